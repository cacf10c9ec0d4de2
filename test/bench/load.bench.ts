import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTopics } from '@weir/cli/commands/topics.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { kafkaOptions } from '../support/servers/kafka-topics.ts'
import { startServer } from '../support/servers/start-server.ts'
import { anySubjectPolicyText, askAsSubject } from './ingress/caller.ts'
import { type Contestant, startPlain, startWeir } from './ingress/contestants.ts'
import { driveWrk, type WrkLoad } from './load/drive-wrk.ts'
import { type BenchOptions, type BenchReport, type BenchTable, spread } from './report.ts'

/** From one careful client to four times what one process is meant for. */
const connectionCounts = [1, 16, 64, 256, 1_024]
/** All on one count; those of a middling API; more than any cache of ours or the processor's holds. */
const subjectCounts = [1, 1_000, 100_000]
/** Twenty of them make a round of about a minute and a half. */
const secondsEach = 4
const warmUpSeconds = 6

interface Seen extends WrkLoad {
  /** Of all: Redis, or this process, was too late. */
  readonly withoutRedis: number
}

/** One cell of the table: a proxy under one load. */
interface Cell {
  readonly proxy: Contestant
  readonly connections: number
  readonly subjects: number
}

const columns: Readonly<Record<string, (load: Seen) => number>> = {
  'requests/s': (load) => load.requestsPerSecond,
  'p50 ms': (load) => load.p50Ms,
  'p99 ms': (load) => load.p99Ms,
  'p99.9 ms': (load) => load.p999Ms,
  refused: (load) => load.refused,
  broken: (load) => load.broken,
  'without Redis': (load) => load.withoutRedis,
}

const count = (what: number) => what.toLocaleString('en-US')

function cellsOf(limiting: Contestant, bare: Contestant): Cell[] {
  return connectionCounts.flatMap((connections) => [
    { proxy: bare, connections, subjects: 1 },
    ...subjectCounts.map((subjects) => ({ proxy: limiting, connections, subjects })),
  ])
}

function tableOf(cells: readonly Cell[], seen: ReadonlyMap<Cell, readonly Seen[]>): BenchTable {
  return {
    title: 'proxy, connections, subjects',
    columns: Object.keys(columns),
    rows: cells.map((cell) => ({
      label: `${cell.proxy.label}, ${count(cell.connections)}, ${cell.proxy.usesRedis ? count(cell.subjects) : '-'}`,
      values: Object.values(columns).map((figure) => spread((seen.get(cell) ?? []).map(figure))),
    })),
  }
}

async function measure({ proxy, connections, subjects }: Cell): Promise<Seen> {
  const before = await proxy.countUnavailable()
  const load = await driveWrk({ origin: proxy.origin, connections, subjects, seconds: secondsEach })
  await proxy.settle()
  return { ...load, withoutRedis: (await proxy.countUnavailable()) - before }
}

/**
 * What the proxy bears, from one connection to far too many: Weir with two limits and everything recorded, beside a
 * proxy that decides nothing.
 */
export async function run({ rounds, progress }: BenchOptions): Promise<BenchReport> {
  const opened: { close(): Promise<void> }[] = []
  const dir = await mkdtemp(join(tmpdir(), 'weir-bench-load-'))
  const own = <T extends { close(): Promise<void> }>(one: T): T => {
    opened.push(one)
    return one
  }
  try {
    progress('starting Redis, Kafka, an upstream and two proxies')
    const redis = own(await startServer(redisServer))
    const kafka = own(await startServer(kafkaServer))
    await createTopics(kafkaOptions(kafka.address), () => {})
    const upstream = own(await startPlain({ label: 'upstream', file: 'upstream', asking: askAsSubject }))
    const servers = { redis: redis.address, kafka: kafka.address, upstream: upstream.origin }
    const asked = { asking: askAsSubject, upstream: upstream.origin }
    const bare = own(await startPlain({ label: 'off: http-proxy', file: 'http-proxy', ...asked }))
    const policy = anySubjectPolicyText(upstream.origin)
    const weir = { label: 'on: weir', asking: askAsSubject, recorded: true, policy }
    const limiting = own(await startWeir(weir, servers, dir))
    for (const proxy of [bare, limiting]) {
      progress(`warming up ${proxy.label}`)
      await driveWrk({ origin: proxy.origin, connections: 64, subjects: 1_000, seconds: warmUpSeconds })
    }
    const cells = cellsOf(limiting, bare)
    const seen = new Map<Cell, Seen[]>(cells.map((cell) => [cell, []]))
    for (let round = 1; round <= rounds; round += 1) {
      for (const cell of cells) {
        seen.get(cell)?.push(await measure(cell))
        if (cell.proxy === bare) progress(`round ${round} of ${rounds}: ${cell.connections} connections`)
      }
    }
    return {
      name: `load: the proxy under wrk, ${secondsEach} s each; limiter on (two limits, everything recorded) and off`,
      tables: [tableOf(cells, seen)],
      rows: [],
      ratios: [],
    }
  } finally {
    for (const one of opened.reverse()) await one.close()
    await rm(dir, { recursive: true, force: true })
  }
}
