import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTopics } from '@weir/cli/commands/topics.ts'
import { createClient } from '@weir/client'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { kafkaOptions } from '../support/servers/kafka-topics.ts'
import { startServer } from '../support/servers/start-server.ts'
import { askCheck, callers, checkedRoute, token } from './ingress/caller.ts'
import { type Contestant, startAsking, startPlain } from './ingress/contestants.ts'
import { type Measured, measure } from './ingress/measure.ts'
import { type BenchOptions, type BenchRatio, type BenchReport, type BenchTable, spread } from './report.ts'

/** Requests a second of each of the callers; 0 is as fast as it goes. */
const paces = [0, 62, 31, 8] as const
/** A slice at the slowest pace has 2,000 requests. What goes before it is not counted: leases find their size. */
const secondsOf = (pace: number) => (pace === 0 ? 2 : 4)
const leadSeconds = 1
const warmUpSeconds = 5
/** Local decisions that are timed one by one. */
const timed = 20_000

interface Peer {
  readonly contestant: Contestant
  readonly name: string
}
/** By pace and name, of each round. */
type Seen = Map<string, Measured[]>

const allCpuUs = ({ serverCpuUs, redisCpuUs }: Measured) => serverCpuUs + redisCpuUs

const paceText = (pace: number) => (pace === 0 ? 'as fast as it goes' : `${pace}/s a caller`)

function tablesOf(peers: readonly Peer[], seen: Seen): BenchTable[] {
  const columns = ['app and ingress', 'ingress', 'redis', 'kafka', 'requests/s']
  return paces.map((pace) => ({
    title: `CPU, µs/request, ${paceText(pace)}`,
    columns,
    rows: peers.map(({ name, contestant }) => {
      const all = seen.get(`${pace} ${name}`) ?? []
      const of = (figure: (one: Measured) => number) => spread(all.map(figure))
      const cpu = [of((one) => one.serverCpuUs), of((one) => one.behindCpuUs), of((one) => one.redisCpuUs)]
      return {
        label: contestant.label,
        values: [...cpu, of((one) => one.kafkaCpuUs), of((one) => one.requestsPerSecond)],
      }
    }),
  }))
}

function ratiosOf(peers: readonly Peer[], seen: Seen): BenchRatio[] {
  const targets = new Map([
    ['0 lease2s', '≤ 0.6'],
    ['62 lease4s', '≤ 0.85'],
  ])
  return paces.flatMap((pace) =>
    peers
      .filter(({ name }) => name !== 'rateLimit')
      .map(({ name, contestant }) => {
        const under = seen.get(`${pace} rateLimit`) ?? []
        const mine = seen.get(`${pace} ${name}`) ?? []
        const target = targets.get(`${pace} ${name}`)
        const ratios = mine.flatMap((one, at) => {
          const other = under[at]
          return other === undefined ? [] : allCpuUs(one) / allCpuUs(other)
        })
        const label = `app, ingress and Redis, ${contestant.label} / rate-limit, ${paceText(pace)}`
        return { label, ...spread(ratios), ...(target === undefined ? {} : { target }) }
      }),
  )
}

/** Times decisions of a client that holds a lease, in microseconds, sorted. */
async function timeDecisions(origin: string): Promise<number[]> {
  const client = createClient({ url: origin, key: token, leases: true })
  const request = { subject: 'caller-0', route: checkedRoute }
  const took: number[] = []
  await waitUntil(
    async () => {
      for (let n = 0; n < 2_000 && took.length < timed; n += 1) {
        const startMs = performance.now()
        if (client.tryCheck(request) === undefined) break
        took.push((performance.now() - startMs) * 1_000)
      }
      await client.check(request)
      return took.length >= timed
    },
    { deadlineMs: 60_000, everyMs: 1 },
  )
  await client.close()
  return took.sort((a, b) => a - b)
}

/** What requests cost an application that asks Weir, singly and with leases, beside libraries that record nothing. */
export async function run({ rounds, progress }: BenchOptions): Promise<BenchReport> {
  const opened: { close(): Promise<void> }[] = []
  const dir = await mkdtemp(join(tmpdir(), 'weir-bench-client-'))
  try {
    progress('starting Redis, Kafka and the contestants')
    const redis = await startServer(redisServer)
    opened.push(redis)
    const kafka = await startServer(kafkaServer)
    opened.push(kafka)
    await createTopics(kafkaOptions(kafka.address), () => {})
    const servers = { redis: redis.address, kafka: kafka.address, upstream: 'http://127.0.0.1:1' }
    const plain = (label: string, file: string, uses = {}) => startPlain({ label, file, asking: askCheck, ...uses })
    const starters = {
      bare: () => plain('bare Fastify', 'bare'),
      rateLimit: () => plain('@fastify/rate-limit', 'rate-limit', { redis: redis.address }),
      express: () => plain('Express, express-rate-limit', 'express-rate-limit', { redis: redis.address }),
      single: () => startAsking('weirFastify', 'weir-client', servers, dir),
      lease2s: () => startAsking('weirFastify, leases of 2 s', 'weir-client', servers, dir, '2s'),
      lease4s: () => startAsking('weirFastify, leases of 4 s', 'weir-client', servers, dir, '4s'),
    }
    const peers: Peer[] = []
    for (const [name, start] of Object.entries(starters)) {
      const contestant = await start()
      opened.push(contestant)
      peers.push({ name, contestant })
    }
    const pids = { redis: redis.pid(), kafka: kafka.pid() }
    for (const { contestant } of peers) {
      progress(`warming up ${contestant.label}`)
      await measure(contestant, pids, warmUpSeconds)
    }
    const seen: Seen = new Map()
    for (let round = 1; round <= rounds; round += 1) {
      for (const pace of paces) {
        for (const { name, contestant } of round % 2 === 1 ? peers : peers.toReversed()) {
          const rate = pace === 0 ? undefined : pace * callers
          await measure(contestant, pids, leadSeconds, rate)
          const one = await measure(contestant, pids, secondsOf(pace), rate)
          seen.set(`${pace} ${name}`, [...(seen.get(`${pace} ${name}`) ?? []), one])
        }
      }
      progress(`round ${round} of ${rounds}`)
    }
    const leased = await startAsking('', 'weir-client', servers, dir, '2s')
    opened.push(leased)
    const took = await timeDecisions(leased.behindOrigin ?? '')
    const at = (share: number) => spread([took[Math.floor(took.length * share)] ?? Number.NaN])
    return {
      name: `client: ${callers} callers of an application, two limits; libraries have one and record nothing`,
      tables: tablesOf(peers, seen),
      rows: [
        { label: `a decision with a lease, p50 of ${took.length}`, unit: 'µs', ...at(0.5) },
        { label: 'a decision with a lease, p99', unit: 'µs (target < 50)', ...at(0.99) },
      ],
      ratios: ratiosOf(peers, seen),
    }
  } finally {
    for (const one of opened.reverse()) await one.close()
    await rm(dir, { recursive: true, force: true })
  }
}
