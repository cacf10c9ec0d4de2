import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { startServer } from '../support/servers/start-server.ts'
import { startTables, type Tables } from '../support/servers/tables.ts'
import { type ConsumerServers, startMetering, startNaive, startNaiveInBlocks } from './metering/contestants.ts'
import { type Drained, drain } from './metering/drain.ts'
import { Engine, readBlocks } from './metering/engine.ts'
import { createTopics, fillTopic, forgetGroups, type TopicValues } from './metering/full-topic.ts'
import { type Latency, measureLatency } from './metering/latency.ts'
import {
  type BenchOptions,
  type BenchRatio,
  type BenchReport,
  type BenchRow,
  type BenchTable,
  spread,
} from './report.ts'

const events = 400_000
/** As many inserts as metering has under way at once. */
const insertsAtOnce = 3
const latencySeconds = 8
const rates = [1_000, 10_000] as const

interface Round {
  readonly metering: Drained
  readonly naive: Drained
  readonly naiveInBlocks: Drained
  /** Events a second. */
  readonly engine: number
  readonly engineAtOnce: number
  /** On disk, an event: raw as inserted, and all tables after merging. */
  readonly bytesRaw: number
  readonly bytesMerged: number
}

const kafkaOptions = (brokers: string) => ({
  brokers: [brokers],
  clientId: 'bench',
  log: createLogger('bench', 'error'),
})

async function bytesPerEvent(tables: Tables, condition: string): Promise<number> {
  const [{ bytes } = { bytes: '0' }] = await tables.rows<{ bytes: string }>(
    `SELECT sum(bytes_on_disk) AS bytes FROM system.parts WHERE database = 'weir' AND active AND ${condition}`,
  )
  return Number(bytes) / events
}

/** Empties the same topic into new tables, and hands those over before they go. */
async function drainInto<Result>(
  brokers: string,
  start: (servers: ConsumerServers) => ReturnType<typeof startMetering>,
  look: (tables: Tables) => Promise<Result>,
): Promise<Drained & { readonly seen: Result }> {
  await forgetGroups(kafkaOptions(brokers))
  const tables = await startTables()
  try {
    const drained = await drain(() => start({ brokers, clickhouseUrl: tables.url }), tables, events)
    return { ...drained, seen: await look(tables) }
  } finally {
    await tables.close()
  }
}

async function playRound(brokers: string, values: TopicValues, engine: Engine): Promise<Round> {
  const metering = await drainInto(brokers, startMetering, async (tables) => {
    const blocks = await readBlocks(tables, values)
    const bytesRaw = await bytesPerEvent(tables, "table = 'decisions'")
    const merging = ['decisions', 'usage_1m', 'usage_15m', 'usage_total_15m', 'limits_15m']
    for (const table of merging) await tables.client.command({ query: `OPTIMIZE TABLE weir.${table} FINAL` })
    return { blocks, bytesRaw, bytesMerged: await bytesPerEvent(tables, "table NOT LIKE 'schema%'") }
  })
  const naive = await drainInto(brokers, startNaive, async () => undefined)
  const naiveInBlocks = await drainInto(brokers, startNaiveInBlocks, async () => undefined)
  const { blocks, bytesRaw, bytesMerged } = metering.seen
  const perSecond = async (atOnce: number) => events / (await engine.insert(blocks, atOnce))
  return {
    metering,
    naive,
    naiveInBlocks,
    bytesRaw,
    bytesMerged,
    engine: await perSecond(1),
    engineAtOnce: await perSecond(insertsAtOnce),
  }
}

async function throughput({ rounds, progress }: BenchOptions): Promise<Round[]> {
  const kafka = await startServer(kafkaServer)
  const engine = await Engine.open(insertsAtOnce)
  try {
    const values = await fillTopic(kafkaOptions(kafka.address), events)
    progress(`${events.toLocaleString('en-US')} decisions are in the topic`)
    const played: Round[] = []
    for (let round = 1; round <= rounds; round++) {
      played.push(await playRound(kafka.address, values, engine))
      progress(`round ${round} of ${rounds}`)
    }
    return played
  } finally {
    await engine.close()
    await kafka.close()
  }
}

/** Of each rate, round by round. */
async function latencies({ rounds, progress }: BenchOptions): Promise<Latency[][]> {
  const kafka = await startServer(kafkaServer)
  const tables = await startTables()
  await createTopics(kafkaOptions(kafka.address))
  const metering = await startMetering({ brokers: kafka.address, clickhouseUrl: tables.url })
  try {
    const servers = { brokers: kafka.address, kafkaPid: kafka.pid(), tables, metering }
    // What the group needs to come together and the programs to get warm is not measured.
    await measureLatency(servers, rates[0], 1)
    const seen: Latency[][] = rates.map(() => [])
    for (let round = 1; round <= rounds; round++) {
      for (const [index, rate] of rates.entries())
        seen[index]?.push(await measureLatency(servers, rate, latencySeconds))
      progress(`latencies of round ${round} of ${rounds}`)
    }
    return seen
  } finally {
    await metering.close()
    await tables.close()
    await kafka.close()
  }
}

const parts = ['writer', 'kafka', 'metering', 'clickhouse'] as const

/** A line for each rate. */
function latencyTable(seen: readonly (readonly Latency[])[]): BenchTable {
  return {
    title: 'while decisions come in',
    columns: ['p50 ms to be queryable', 'p99 ms', ...parts.map((part) => `${part} µs`), 'in all µs'],
    rows: rates.map((rate, index) => {
      const of = (pick: (one: Latency) => number) => spread((seen[index] ?? []).map(pick))
      return {
        label: `${rate.toLocaleString('en-US')}/s`,
        values: [
          of(({ p50Ms }) => p50Ms),
          of(({ p99Ms }) => p99Ms),
          ...parts.map((part) => of(({ cpuUs }) => cpuUs[part])),
          of(({ cpuUs }) => parts.reduce((sum, part) => sum + cpuUs[part], 0)),
        ],
      }
    }),
  }
}

function throughputRows(rounds: readonly Round[]): BenchRow[] {
  const row = (label: string, unit: string, of: (round: Round) => number): BenchRow => ({
    label,
    unit,
    ...spread(rounds.map(of)),
  })
  const inBlocks = 'in blocks as large'
  return [
    row('metering', 'events/s', ({ metering }) => metering.eventsPerSecond),
    row('naive consumer', 'events/s', ({ naive }) => naive.eventsPerSecond),
    row(`naive consumer ${inBlocks}`, 'events/s', ({ naiveInBlocks }) => naiveInBlocks.eventsPerSecond),
    row('the engine alone, the same blocks one by one', 'events/s', ({ engine }) => engine),
    row(`the engine alone, ${insertsAtOnce} at once`, 'events/s', ({ engineAtOnce }) => engineAtOnce),
    row('CPU, metering', 'µs/event', ({ metering }) => metering.consumerCpuUs),
    row('CPU, naive consumer', 'µs/event', ({ naive }) => naive.consumerCpuUs),
    row(`CPU, naive consumer ${inBlocks}`, 'µs/event', ({ naiveInBlocks }) => naiveInBlocks.consumerCpuUs),
    row('CPU, ClickHouse under metering', 'µs/event', ({ metering }) => metering.clickhouseCpuUs),
    row('CPU, ClickHouse under the naive consumer', 'µs/event', ({ naive }) => naive.clickhouseCpuUs),
    row(`CPU, ClickHouse under it ${inBlocks}`, 'µs/event', ({ naiveInBlocks }) => naiveInBlocks.clickhouseCpuUs),
    row('on disk, weir.decisions as inserted', 'bytes/event', ({ bytesRaw }) => bytesRaw),
    row('on disk, all tables merged', 'bytes/event', ({ bytesMerged }) => bytesMerged),
  ]
}

function throughputRatios(rounds: readonly Round[]): BenchRatio[] {
  const ratio = (label: string, target: string | undefined, of: (round: Round) => number): BenchRatio => ({
    label,
    ...spread(rounds.map(of)),
    ...(target === undefined ? {} : { target }),
  })
  const events = (a: Drained, b: Drained) => a.eventsPerSecond / b.eventsPerSecond
  const cpu = (a: Drained, b: Drained) => a.consumerCpuUs / b.consumerCpuUs
  return [
    ratio('metering / the engine, one by one', '≥ 0.6', (one) => one.metering.eventsPerSecond / one.engine),
    ratio('metering / the engine, at once', '≥ 0.6', (one) => one.metering.eventsPerSecond / one.engineAtOnce),
    ratio('metering / naive, events/s', '≥ 1.5', ({ metering, naive }) => events(metering, naive)),
    ratio('metering / naive, CPU an event', '≤ 0.33', ({ metering, naive }) => cpu(metering, naive)),
    ratio('metering / naive in blocks as large, events/s', undefined, (one) => events(one.metering, one.naiveInBlocks)),
    ratio('metering / naive in blocks as large, CPU', undefined, (one) => cpu(one.metering, one.naiveInBlocks)),
  ]
}

/**
 * One process of metering on a full topic, beside the engine alone and plain consumers; how soon a decision can be
 * asked for.
 */
export async function run(options: BenchOptions): Promise<BenchReport> {
  const rounds = await throughput(options)
  const seen = await latencies(options)
  return {
    name: `metering: ${events.toLocaleString('en-US')} decisions in a full topic, one process, all views`,
    tables: [latencyTable(seen)],
    rows: throughputRows(rounds),
    ratios: throughputRatios(rounds),
  }
}
