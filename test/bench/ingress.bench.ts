import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTopics } from '@weir/cli/commands/topics.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { kafkaOptions } from '../support/servers/kafka-topics.ts'
import { startServer } from '../support/servers/start-server.ts'
import { askProxy, callers } from './ingress/caller.ts'
import { type Contestants, startContestants, startPlain } from './ingress/contestants.ts'
import { type Measured, measure } from './ingress/measure.ts'
import { targetRatios, targetRows } from './ingress/targets.ts'
import {
  groups,
  othersShareMax,
  playTurn,
  type Round,
  secondsPerSlice,
  type Turn,
  undisturbed,
} from './ingress/turns.ts'
import { type BenchOptions, type BenchReport, type BenchRow, type BenchTable, spread } from './report.ts'

/** Until about 30,000 requests the engine's compiler, on threads of its own, costs more than what is measured. */
const warmUpSeconds = 5

/** Turns of one group, a list in the order of `groups`. */
type Turns = readonly (readonly Turn[])[]

function tablesOf(contestants: Contestants, rounds: readonly Round[]): BenchTable[] {
  const table = (title: string, figures: Readonly<Record<string, (one: Measured) => number>>): BenchTable => ({
    title,
    columns: Object.keys(figures),
    rows: Array.from(contestants, ([name, { label }]) => ({
      label,
      values: Object.values(figures).map((figure) => spread(rounds.flatMap((of) => of.get(name) ?? []).map(figure))),
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

/** How many rounds of each group other programs disturbed, and whether they count. */
function disturbedRows(contestants: Contestants, turns: Turns): BenchRow[] {
  return turns.flatMap((group, at) => {
    const names = (groups[at] ?? []).map((name) => contestants.get(name)?.label)
    const left = group.length - undisturbed(group).length
    const isAll = group.every(({ othersShare }) => othersShare > othersShareMax)
    const label = `${names[0]} to ${names.at(-1)}`
    return [
      {
        label: `rounds left out, ${label}`,
        unit: isAll ? `of ${group.length}: EVERY ONE WAS DISTURBED, and all count` : `of ${group.length}`,
        ...spread([left]),
      },
      {
        label: `other programs, ${label}`,
        unit: `% of the machine at most in a round; above ${othersShareMax * 100} it is left out`,
        ...spread(group.map(({ othersShare }) => othersShare * 100)),
      },
    ]
  })
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
    const ofContestants = [...contestants.values()].flatMap(({ pid, behindPid = [] }) => [pid].concat(behindPid))
    const mine = [pids.redis, pids.kafka, upstream.pid, ...ofContestants]
    for (const contestant of contestants.values()) {
      progress(`warming up ${contestant.label}`)
      await measure(contestant, pids, warmUpSeconds)
    }
    const before = await countUnavailable(contestants)
    const turns: Turn[][] = groups.map(() => [])
    for (let round = 1; round <= rounds; round += 1) {
      for (const [at, group] of groups.entries()) turns[at]?.push(await playTurn(group, round, contestants, pids, mine))
      progress(`round ${round} of ${rounds}`)
    }
    const unavailable = (await countUnavailable(contestants)) - before
    const seen = turns.flatMap(undisturbed).map(({ measured }) => measured)
    return {
      name: `ingress: every door from ${callers} connections, twice ${secondsPerSlice} s each a round, forth and back; two limits unless it says three`,
      tables: tablesOf(contestants, seen),
      rows: [
        ...targetRows(seen),
        { label: 'weir: decisions made without Redis', unit: 'in all', ...spread([unavailable]) },
        ...disturbedRows(contestants, turns),
      ],
      ratios: targetRatios(seen),
    }
  } finally {
    for (const one of opened.reverse()) await one.close()
    await rm(dir, { recursive: true, force: true })
  }
}
