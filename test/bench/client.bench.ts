import { mkdtemp, rm } from 'node:fs/promises'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTopics } from '@weir/cli/commands/topics.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { kafkaOptions } from '../support/servers/kafka-topics.ts'
import { startServer } from '../support/servers/start-server.ts'
import { askCheck, callers } from './ingress/caller.ts'
import { type Contestant, startAsking, startPlain } from './ingress/contestants.ts'
import { type Measured, measure } from './ingress/measure.ts'
import { type BenchOptions, type BenchRatio, type BenchReport, spread } from './report.ts'

/** Before that the engine's compiler costs more than what is measured; two processes compile where Weir is asked. */
const warmUpRequests = 60_000
/** A tick of the kernel's CPU clock is then less than a percent of what a busy process uses. */
const secondsPerRound = 3

/** What is aimed at: CPU of everything that serves and limits, Redis too. */
const target = '≤ 1.5'

const figures: Readonly<Record<string, (one: Measured) => number>> = {
  'all of it': totalCpuUs,
  app: ({ serverCpuUs, behindCpuUs }) => serverCpuUs - behindCpuUs,
  'main thread of it': ({ mainThreadCpuUs }) => mainThreadCpuUs,
  ingress: ({ behindCpuUs }) => behindCpuUs,
  redis: ({ redisCpuUs }) => redisCpuUs,
  'requests/s': ({ requestsPerSecond }) => requestsPerSecond,
  'p50 ms': ({ p50Ms }) => p50Ms,
  'p99 ms': ({ p99Ms }) => p99Ms,
}

function totalCpuUs({ serverCpuUs, redisCpuUs }: Measured): number {
  return serverCpuUs + redisCpuUs
}

type Name = 'fastify' | 'fastifyLimited' | 'fastifyWeir' | 'express' | 'expressLimited' | 'expressWeir'
type Contestants = readonly (readonly [name: Name, contestant: Contestant])[]
type Round = ReadonlyMap<Name, Measured>

async function startAll(
  servers: { readonly redis: string; readonly kafka: string },
  dir: string,
  own: (one: Contestant) => Contestant,
): Promise<Contestants> {
  const { redis } = servers
  const plain = async (label: string, file: string, uses: { readonly redis?: string } = {}) =>
    own(await startPlain({ label, file, asking: askCheck, ...uses }))
  const asking = async (label: string, file: string) =>
    // No request goes through the proxy.
    own(await startAsking(label, file, { ...servers, upstream: 'http://127.0.0.1:1' }, dir))
  return [
    ['fastify', await plain('Fastify', 'bare')],
    ['fastifyLimited', await plain('Fastify, @fastify/rate-limit', 'rate-limit', { redis })],
    ['fastifyWeir', await asking('Fastify, weirFastify', 'weir-client')],
    ['express', await plain('Express', 'bare-express')],
    ['expressLimited', await plain('Express, express-rate-limit', 'express-rate-limit', { redis })],
    ['expressWeir', await asking('Express, weirExpress', 'weir-express')],
  ]
}

const cpuOf = (round: Round, name: Name) => {
  const found = round.get(name)
  if (found === undefined) throw new Error(`${name} was not measured`)
  return totalCpuUs(found)
}

const ratiosOf = (rounds: readonly Round[]): BenchRatio[] =>
  (
    [
      ['weirFastify and weir / @fastify/rate-limit', 'fastifyWeir', 'fastifyLimited'],
      ['weirExpress and weir / express-rate-limit', 'expressWeir', 'expressLimited'],
    ] as const
  ).map(([label, mine, other]) => ({
    label: `CPU with Redis, ${label}`,
    ...spread(rounds.map((round) => cpuOf(round, mine) / cpuOf(round, other))),
    target,
  }))

/** What limiting costs an application by @weir/client, all of Weir included, and by the usual libraries. */
export async function run({ rounds, progress }: BenchOptions): Promise<BenchReport> {
  const opened: { close(): Promise<void> }[] = []
  const own = <T extends { close(): Promise<void> }>(one: T): T => {
    opened.push(one)
    return one
  }
  const dir = await mkdtemp(join(tmpdir(), 'weir-bench-client-'))
  try {
    progress('starting Redis, Kafka and the contestants')
    const redis = own(await startServer(redisServer))
    const kafka = own(await startServer(kafkaServer))
    await createTopics(kafkaOptions(kafka.address), () => {})
    const pids = { redis: redis.pid(), kafka: kafka.pid() }
    const contestants = await startAll({ redis: redis.address, kafka: kafka.address }, dir, own)
    for (const [, contestant] of contestants) {
      progress(`warming up ${contestant.label}`)
      let requests = 0
      while (requests < warmUpRequests) requests += (await measure(contestant, pids, secondsPerRound)).requests
    }
    const seen: Round[] = []
    for (let at = 0; at < rounds; at += 1) {
      const round = new Map<Name, Measured>()
      // Who follows whom changes, so that what one leaves behind does not always burden the same other.
      const first = at % contestants.length
      for (const [name, one] of [...contestants.slice(first), ...contestants.slice(0, first)]) {
        round.set(name, await measure(one, pids, secondsPerRound))
      }
      seen.push(round)
      progress(`round ${at + 1} of ${rounds}`)
    }
    const load = loadavg()[0] ?? Number.NaN
    return {
      name: `client: applications that limit, ${callers} connections, ${secondsPerRound} s each in turn`,
      tables: [
        {
          title: 'CPU, µs/request',
          columns: Object.keys(figures),
          rows: contestants.map(([name, { label }]) => ({
            label,
            values: Object.values(figures).map((figure) =>
              spread(seen.flatMap((round) => [round.get(name)].flatMap((one) => (one ? [figure(one)] : [])))),
            ),
          })),
        },
      ],
      rows: [{ label: 'load of the machine at the end', unit: 'processes', ...spread([load]) }],
      ratios: ratiosOf(seen),
    }
  } finally {
    for (const one of opened.reverse()) await one.close()
    await rm(dir, { recursive: true, force: true })
  }
}
