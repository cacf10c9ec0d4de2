import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTopics } from '@weir/cli/commands/topics.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { kafkaOptions } from '../support/servers/kafka-topics.ts'
import { startServer } from '../support/servers/start-server.ts'
import { askProxy, callers } from './ingress/caller.ts'
import { type Contestants, type Name, startContestants, startPlain } from './ingress/contestants.ts'
import { type Measured, measure, type Pids } from './ingress/measure.ts'
import { type Round, targetRatios, targetRows } from './ingress/targets.ts'
import { type BenchOptions, type BenchReport, type BenchTable, spread } from './report.ts'

/** Until about 30,000 requests the engine's compiler, on threads of its own, costs more than what is measured. */
const warmUpSeconds = 5
/** A tick of the kernel's CPU clock is then less than a percent of what a busy process uses. */
const secondsPerRound = 3

async function playRound(contestants: Contestants, round: number, pids: Pids): Promise<Round> {
  const all = [...contestants]
  // Who follows whom changes, so that what one leaves behind does not always burden the same other.
  const order = [...all.slice(round % all.length), ...all.slice(0, round % all.length)]
  const measured = new Map<Name, Measured>()
  for (const [name, contestant] of order) measured.set(name, await measure(contestant, pids, secondsPerRound))
  return (name) => {
    const found = measured.get(name)
    if (found === undefined) throw new Error(`${name} was not measured`)
    return found
  }
}

function tablesOf(contestants: Contestants, rounds: readonly Round[]): BenchTable[] {
  const table = (title: string, figures: Readonly<Record<string, (one: Measured) => number>>): BenchTable => ({
    title,
    columns: Object.keys(figures),
    rows: Array.from(contestants, ([name, { label }]) => ({
      label,
      values: Object.values(figures).map((figure) => spread(rounds.map((of) => figure(of(name))))),
    })),
  })
  return [
    table('CPU, µs/request', {
      server: (one) => one.serverCpuUs,
      'main thread of it': (one) => one.mainThreadCpuUs,
      redis: (one) => one.redisCpuUs,
      kafka: (one) => one.kafkaCpuUs,
    }),
    table('', {
      'requests/s': (one) => one.requestsPerSecond,
      'p50 ms': (one) => one.p50Ms,
      'p99 ms': (one) => one.p99Ms,
      'load generator, cores': (one) => one.generatorCores,
    }),
  ]
}

async function countUnavailable(contestants: Contestants): Promise<number> {
  const counts = await Promise.all(Array.from(contestants.values(), (one) => one.countUnavailable()))
  return counts.reduce((sum, count) => sum + count, 0)
}

/** What each door of Weir costs beside servers that limit less or nothing, on one Redis, round by round in turn. */
export async function run({ rounds, progress }: BenchOptions): Promise<BenchReport> {
  const opened: { close(): Promise<void> }[] = []
  const dir = await mkdtemp(join(tmpdir(), 'weir-bench-ingress-'))
  const own = (one: { close(): Promise<void> }) => opened.push(one)
  try {
    progress('starting Redis, Kafka, an upstream and the contestants')
    const redis = await startServer(redisServer)
    own(redis)
    const kafka = await startServer(kafkaServer)
    own(kafka)
    await createTopics(kafkaOptions(kafka.address), () => {})
    const upstream = await startPlain({ label: 'upstream', file: 'upstream', asking: askProxy })
    own(upstream)
    const servers = { redis: redis.address, kafka: kafka.address, upstream: upstream.origin }
    const contestants = await startContestants(servers, dir, own)
    const pids = { redis: redis.pid(), kafka: kafka.pid() }
    for (const contestant of contestants.values()) {
      progress(`warming up ${contestant.label}`)
      await measure(contestant, pids, warmUpSeconds)
    }
    const before = await countUnavailable(contestants)
    const seen: Round[] = []
    for (let round = 1; round <= rounds; round += 1) {
      seen.push(await playRound(contestants, round, pids))
      progress(`round ${round} of ${rounds}`)
    }
    const unavailable = (await countUnavailable(contestants)) - before
    return {
      name: `ingress: every door from ${callers} connections, ${secondsPerRound} s each in turn; two limits unless it says three`,
      tables: tablesOf(contestants, seen),
      rows: [
        ...targetRows(seen),
        { label: 'weir: decisions made without Redis', unit: 'in all', ...spread([unavailable]) },
      ],
      ratios: targetRatios(seen),
    }
  } finally {
    for (const one of opened.reverse()) await one.close()
    await rm(dir, { recursive: true, force: true })
  }
}
