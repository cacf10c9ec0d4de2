import { randomUUID } from 'node:crypto'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { partitionOf } from '@weir/kafka/partition.ts'
import { startTables, type Tables } from '../support/servers/tables.ts'
import { candidatesFor } from './codecs/candidates.ts'
import { makeRecords } from './metering/make-records.ts'
import { processCpuSeconds } from './process-cpu.ts'
import { type BenchOptions, type BenchReport, type BenchTable, spread } from './report.ts'

/** Five minutes of an API with 1,000 requests a second, in blocks as metering inserts them. */
const events = 300_000
const perSecond = 1_000
const blockRows = 20_000
const partitions = 12
const startMs = Date.UTC(2026, 10, 20, 12)

interface Column {
  readonly name: string
  readonly type: string
  readonly codec: string
}

/** The rows as they stand in Kafka, a partition after the other as metering would insert what has gathered. */
async function fill(tables: Tables): Promise<void> {
  const lines = Array.from({ length: partitions }, (): { decisions: string[]; outcomes: string[] } => ({
    decisions: [],
    outcomes: [],
  }))
  const [journal, topicId] = [randomUUID(), randomUUID()]
  const place = (partition: number, to: readonly string[]) =>
    `,"journal":"${journal}","seq":${to.length},"topic_id":"${topicId}","partition":${partition},"offset":${to.length}}\n`
  const records = makeRecords((number) => startMs + Math.floor((number * 1_000) / perSecond))
  for (let at = 0; at < events; at++) {
    const { subject, decision, outcome } = records.next().value
    const partition = partitionOf(subject, partitions)
    const to = lines[partition]
    to?.decisions.push(decision + place(partition, to.decisions))
    if (outcome !== undefined) to?.outcomes.push(outcome + place(partition, to.outcomes))
  }
  for (const [table, texts] of [
    ['weir.decisions', lines.map(({ decisions }) => decisions)],
    ['weir.outcomes', lines.map(({ outcomes }) => outcomes)],
  ] as const) {
    for (const text of texts) {
      for (let from = 0; from < text.length; from += blockRows) {
        const block = Buffer.from(text.slice(from, from + blockRows).join(''))
        await insertBlock(tables.client, { table, dedupToken: randomUUID(), lines: block })
      }
    }
  }
}

const quoted = (name: string) => `\`${name}\``

/**
 * Bytes an event of every column under every codec that is worth trying, in the order in which the table sorts its
 * rows.
 */
async function tryCodecs(tables: Tables, table: string): Promise<BenchTable> {
  const columns = await tables.rows<Column>(
    `SELECT name, type, compression_codec AS codec FROM system.columns WHERE database = 'weir' AND table = '${table}'`,
  )
  const tried = columns.flatMap((column) => [
    { column, codec: column.codec, name: `${column.name}|now` },
    ...candidatesFor(column.type).map((codec) => ({
      column,
      codec: `CODEC(${codec})`,
      name: `${column.name}|${codec}`,
    })),
  ])
  const definitions = tried.map(({ column, codec, name }) => `${quoted(name)} ${column.type} ${codec}`)
  await tables.client.command({
    query: `CREATE TABLE weir.codecs (${definitions.join(', ')}) ENGINE = MergeTree ORDER BY tuple()
            SETTINGS allow_suspicious_low_cardinality_types = 1`,
    clickhouse_settings: { allow_suspicious_codecs: 1 },
  })
  await tables.client.command({
    query: `INSERT INTO weir.codecs SELECT ${tried.map(({ column }) => quoted(column.name)).join(', ')} FROM weir.${table} ORDER BY subject, ts, id`,
    clickhouse_settings: { max_insert_threads: '1', async_insert: 0 },
  })
  await tables.client.command({ query: 'OPTIMIZE TABLE weir.codecs FINAL' })
  const sizes = await tables.rows<{ name: string; bytes: string }>(
    `SELECT name, data_compressed_bytes AS bytes FROM system.columns WHERE database = 'weir' AND table = 'codecs'`,
  )
  const [{ rows } = { rows: '1' }] = await tables.rows<{ rows: string }>('SELECT count() AS rows FROM weir.codecs')
  await tables.client.command({ query: 'DROP TABLE weir.codecs SYNC' })
  const perEvent = (name: string) => {
    const found = sizes.find((size) => size.name === name)
    return found === undefined ? undefined : spread([Number(found.bytes) / Number(rows)])
  }
  const codecs = [...new Set(['now', ...columns.flatMap(({ type }) => candidatesFor(type))])]
  return {
    title: `weir.${table}: bytes an event on disk`,
    columns: codecs,
    rows: columns.map(({ name, codec }) => ({
      label: codec === '' ? name : `${name} ${codec}`,
      values: codecs.map((one) => perEvent(`${name}|${one}`)),
    })),
  }
}

const tableNames = [
  'decisions',
  'usage_1m',
  'usage_15m',
  'usage_total_15m',
  'limits_15m',
  'numbers',
  'outcomes',
  'outcomes_15m',
]

/** Bytes on disk of every column of the raw tables under candidate codecs, and of all tables as they are. */
export async function run({ progress }: BenchOptions): Promise<BenchReport> {
  const tables = await startTables()
  try {
    const cpuBefore = processCpuSeconds(tables.pid())
    await fill(tables)
    const cpuMicros = ((processCpuSeconds(tables.pid()) - cpuBefore) * 1e6) / events
    progress('rows are in')
    const sizes = []
    for (const table of tableNames) {
      await tables.client.command({ query: `OPTIMIZE TABLE weir.${table} FINAL` })
      const [{ bytes } = { bytes: '0' }] = await tables.rows<{ bytes: string }>(
        `SELECT sum(data_compressed_bytes) AS bytes FROM system.parts WHERE database = 'weir' AND table = '${table}' AND active`,
      )
      sizes.push({ label: `weir.${table}`, unit: 'bytes/decision', ...spread([Number(bytes) / events]) })
    }
    return {
      name: `codecs: ${events.toLocaleString('en-US')} decisions of 1,000 subjects and the outcomes of those allowed, merged`,
      tables: [await tryCodecs(tables, 'decisions'), await tryCodecs(tables, 'outcomes')],
      rows: [...sizes, { label: 'CPU of ClickHouse, with the outcome', unit: 'µs/decision', ...spread([cpuMicros]) }],
      ratios: [],
    }
  } finally {
    await tables.close()
  }
}
