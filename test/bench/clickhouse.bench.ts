import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { createClient } from '@clickhouse/client'
import { clickhouseServer } from '@weir/local-clickhouse/clickhouse-server.ts'
import { loadNative } from '@weir/local-clickhouse/engine/native.ts'
import { startServer } from '../support/servers/start-server.ts'
import { type BenchOptions, type BenchReport, spread } from './report.ts'

/** One insert of the metering service at full load. */
const rowsPerBlock = 20_000
const blocksPerRound = 5
/** A decision record with three limits. */
const rowBytes = 434

const schema = [
  `CREATE TABLE raw (ts DateTime64(3, 'UTC'), id UUID, subject String, route LowCardinality(String), outcome LowCardinality(String),
    cost UInt64, count UInt64, pad String) ENGINE = MergeTree ORDER BY (subject, ts, id) SETTINGS non_replicated_deduplication_window = 10000`,
  ...['1 MINUTE', '15 MINUTE'].flatMap((bucket, index) => [
    `CREATE TABLE usage_${index} (ts DateTime, subject String, route LowCardinality(String), outcome LowCardinality(String), count UInt64, cost UInt64)
      ENGINE = SummingMergeTree((count, cost)) ORDER BY (subject, ts, route, outcome) SETTINGS non_replicated_deduplication_window = 10000`,
    `CREATE MATERIALIZED VIEW usage_${index}_mv TO usage_${index} AS SELECT toStartOfInterval(r.ts, INTERVAL ${bucket}) AS ts, subject, route, outcome,
      sum(r.count) AS count, sum(r.cost * r.count) AS cost FROM raw AS r GROUP BY ts, subject, route, outcome`,
  ]),
]

function makeBlock(): Buffer {
  const lines = Array.from({ length: rowsPerBlock }, (_, index) => {
    const ts = `2026-01-01 00:${String(index % 60).padStart(2, '0')}:00.123`
    const row = {
      ts,
      id: randomUUID(),
      subject: `s${index % 500}`,
      route: `/r/${index % 20}`,
      outcome: 'allow',
      cost: 1,
      count: 1,
      pad: '',
    }
    return `${JSON.stringify({ ...row, pad: 'x'.repeat(rowBytes - 1 - JSON.stringify(row).length) })}\n`
  })
  return Buffer.from(lines.join(''))
}

interface Side {
  readonly name: string
  insert(block: Buffer, token: string): Promise<void>
  /** CPU seconds used so far by the process that holds the engine. */
  cpuSeconds(): number
  close(): Promise<void>
}

async function openEngineSide(): Promise<Side> {
  const dir = await mkdtemp(join(tmpdir(), 'weir-bench-clickhouse-'))
  const native = loadNative()
  const connection = native.CreateConnection(dir, [])
  for (const sql of schema) await native.QueryAsyncConnection(connection, sql, 'Null')
  return {
    name: 'the engine alone',
    async insert(block, token) {
      const sql = `INSERT INTO raw SETTINGS insert_deduplication_token='${token}', async_insert=0 FORMAT JSONEachRow`
      await native.InsertRawAsyncConnection(connection, sql, block, false)
    },
    cpuSeconds() {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    },
    async close() {
      native.CloseConnection(connection)
      await rm(dir, { recursive: true, force: true })
    },
  }
}

async function openHttpSide(): Promise<Side> {
  const server = await startServer(clickhouseServer)
  const client = createClient({ url: server.address })
  for (const query of schema) await client.command({ query })
  return {
    name: 'over HTTP',
    async insert(block, token) {
      const values = Readable.from([block], { objectMode: false })
      const clickhouse_settings = { insert_deduplication_token: token, async_insert: 0 } as const
      // `insert` would take objects and write their JSON itself; the metering service has the bytes already.
      const query = 'INSERT INTO raw FORMAT JSONEachRow'
      const { stream } = await client.exec({ query, values, clickhouse_settings })
      stream.resume()
    },
    cpuSeconds() {
      const fields = readFileSync(`/proc/${server.pid()}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
      // User and system time in ticks, 100 of them a second on every Linux.
      return (Number(fields[11]) + Number(fields[12])) / 100
    },
    async close() {
      await client.close()
      await server.close()
    },
  }
}

async function measure(side: Side, block: Buffer): Promise<{ rowsPerSecond: number; cpuMicrosPerRow: number }> {
  const rows = rowsPerBlock * blocksPerRound
  const cpuBefore = side.cpuSeconds()
  const startedAt = performance.now()
  for (let index = 0; index < blocksPerRound; index++) await side.insert(block, randomUUID())
  const seconds = (performance.now() - startedAt) / 1_000
  return { rowsPerSecond: rows / seconds, cpuMicrosPerRow: ((side.cpuSeconds() - cpuBefore) / rows) * 1e6 }
}

/** Insert throughput of the local ClickHouse against the engine it is made of, round by round in turn. */
export async function run({ rounds, progress }: BenchOptions): Promise<BenchReport> {
  const engine = await openEngineSide()
  const http = await openHttpSide()
  const block = makeBlock()
  const seen: { engine: Awaited<ReturnType<typeof measure>>; http: Awaited<ReturnType<typeof measure>> }[] = []
  try {
    // The first blocks of both sides warm up caches and are not counted.
    for (const side of [engine, http]) await side.insert(block, randomUUID())
    for (let round = 1; round <= rounds; round++) {
      // Who comes first changes, so that merges left behind by one side do not always burden the other.
      const first = round % 2 === 0 ? await measure(engine, block) : undefined
      const overHttp = await measure(http, block)
      seen.push({ engine: first ?? (await measure(engine, block)), http: overHttp })
      progress(`round ${round} of ${rounds}`)
    }
  } finally {
    await http.close()
    await engine.close()
  }
  return {
    name: `clickhouse: ${rowsPerBlock.toLocaleString('en-US')} rows of ${rowBytes} bytes a block into a table with two views`,
    rows: [
      { label: `insert, ${engine.name}`, unit: 'rows/s', ...spread(seen.map((round) => round.engine.rowsPerSecond)) },
      { label: `insert, ${http.name}`, unit: 'rows/s', ...spread(seen.map((round) => round.http.rowsPerSecond)) },
      { label: `CPU, ${engine.name}`, unit: 'µs/row', ...spread(seen.map((round) => round.engine.cpuMicrosPerRow)) },
      {
        label: `CPU, ${http.name} (server)`,
        unit: 'µs/row',
        ...spread(seen.map((round) => round.http.cpuMicrosPerRow)),
      },
    ],
    ratios: [
      {
        label: 'throughput over HTTP to the engine alone',
        ...spread(seen.map((round) => round.http.rowsPerSecond / round.engine.rowsPerSecond)),
        target: '≥ 0.7',
      },
    ],
  }
}
