import { mkdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { rawSums, rollupSums } from '@weir/clickhouse/audit/rollup-sums.ts'
import { findRollups } from '@weir/clickhouse/audit/rollups.ts'
import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { WeirError } from '@weir/core/errors.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { kafkaOptions } from '../support/servers/kafka-topics.ts'
import { startServer } from '../support/servers/start-server.ts'
import { startTables, type Tables } from '../support/servers/tables.ts'
import { startConsole } from '../support/start-console.ts'
import { processCpuSeconds } from './process-cpu.ts'
import { type BenchOptions, type BenchReport, type BenchTable, spread } from './report.ts'
import { fillYear, type Year } from './usage/fill-year.ts'
import { exportOf, type Question, questionsOf } from './usage/questions.ts'
import { type Export, readExport } from './usage/read-export.ts'

const rowsDefault = 100_000_000
const dayMs = 86_400_000
/** A busy machine makes the rows of an insert in half a minute. */
const insertMsMax = 600_000
/** Each question is asked so often, first over the API and then of the raw rows. */
const asksOfApi = 20
const asksOfRaw = 3

interface Figures {
  readonly ms: readonly number[]
  readonly cpuMs: number
}

/** The first is for the caches. */
async function timed(tables: Tables, times: number, ask: (at: number) => Promise<unknown>): Promise<Figures> {
  await ask(0)
  const ms: number[] = []
  const cpuBefore = processCpuSeconds(tables.pid())
  for (let at = 1; at <= times; at += 1) {
    const startedAt = performance.now()
    await ask(at)
    ms.push(performance.now() - startedAt)
  }
  return { ms, cpuMs: ((processCpuSeconds(tables.pid()) - cpuBefore) * 1_000) / times }
}

/** Throws where a rollup is not what the raw rows of a day in the middle make of it. */
async function auditSample(tables: Tables, { fromMs }: Year): Promise<void> {
  const start = fromMs + 340 * dayMs
  const span = { fromMs: start, toMs: start + dayMs }
  for (const rollup of await findRollups(tables.client)) {
    const sums = [await rawSums(tables.client, rollup, span), await rollupSums(tables.client, rollup, span)]
    if (!isDeepStrictEqual(sums[0], sums[1])) throw new Error(`${rollup.table} is not the sum of its raw rows`)
  }
}

/** The year that the tables have; undefined where they are empty. */
async function findYear(tables: Tables): Promise<Year | undefined> {
  const [found] = await tables.rows<{ rows: string; from: string; to: string }>(
    `SELECT toString(count()) AS rows, toString(toUnixTimestamp(toStartOfDay(min(ts)))) AS from,
       toString(toUnixTimestamp(toStartOfDay(max(ts)) + INTERVAL 1 DAY)) AS to FROM weir.decisions`,
  )
  const rows = Number(found?.rows)
  return rows === 0 ? undefined : { rows, fromMs: Number(found?.from) * 1_000, toMs: Number(found?.to) * 1_000 }
}

/** Until merges have made few parts of many, as a night does. */
async function mergeParts(tables: Tables): Promise<void> {
  for (const table of ['usage_15m', 'usage_total_15m', 'decisions'])
    await tables.client.command({
      query: `OPTIMIZE TABLE weir.${table}`,
      clickhouse_settings: { optimize_throw_if_noop: 0 },
    })
}

const one = (value: number | undefined) => (value === undefined ? undefined : spread([value]))

const exported = ({ rows, megabytes, seconds, residentMb: [before, most] }: Export): BenchTable => ({
  title: 'as CSV',
  columns: ['rows', 'MB', 's', 'console before MB', 'console at most MB'],
  rows: [{ label: 'by subject, key, route and outcome', values: [rows, megabytes, seconds, before, most].map(one) }],
})

async function tableOf(tables: Tables, asked: ReadonlyMap<Question, readonly [Figures, Figures | undefined]>) {
  const sizes = await tables.rows<{ name: string; rows: string; parts: string; bytes: string }>(
    `SELECT table AS name, toString(sum(rows)) AS rows, toString(count()) AS parts, toString(sum(bytes_on_disk)) AS bytes
     FROM system.parts WHERE database = 'weir' AND active AND (table LIKE 'usage%' OR table = 'decisions') GROUP BY table ORDER BY table`,
  )
  const answers: BenchTable = {
    title: 'question',
    columns: ['API ms', 'ClickHouse CPU ms', 'raw ms', 'raw CPU ms', 'raw to API'],
    rows: [...asked].map(([{ label }, [api, raw]]) => ({
      label,
      values: [
        spread(api.ms),
        one(api.cpuMs),
        raw === undefined ? undefined : spread(raw.ms),
        one(raw?.cpuMs),
        raw === undefined ? undefined : one(spread(raw.ms).median / spread(api.ms).median),
      ],
    })),
  }
  const stored: BenchTable = {
    title: 'stored',
    columns: ['rows', 'parts', 'MB'],
    rows: sizes.map(({ name, rows, parts, bytes }) => ({
      label: `weir.${name}`,
      values: [one(Number(rows)), one(Number(parts)), one(Number(bytes) / 1e6)],
    })),
  }
  return [answers, stored]
}

/** Makes the year that ends today. */
async function makeYear(tables: Tables, rows: number, progress: BenchOptions['progress']): Promise<Year> {
  const toMs = Math.floor(Date.now() / dayMs) * dayMs
  const year = { rows, fromMs: toMs - 365 * dayMs, toMs }
  const filler = connectClickhouse(tables.url, 'weir-bench', insertMsMax)
  await fillYear(filler, year, progress).finally(() => filler.close())
  progress(`${rows} rows are in; merging`)
  await mergeParts(tables)
  return year
}

/** A year of decisions of 50,000 subjects, and how long the usage API takes for what people ask. */
export async function run({ more, progress }: BenchOptions): Promise<BenchReport> {
  const [given = String(rowsDefault)] = more.rows
  if (!/^[1-9]\d{0,9}$/.test(given))
    throw new WeirError('COMMAND_INVALID', `--rows takes a whole number, not ${given}.`)
  const rows = Number(given)
  const keptDir = more.data[0] === undefined ? undefined : resolve(more.data[0])
  if (keptDir !== undefined) await mkdir(keptDir, { recursive: true })
  const [kafka, tables] = await Promise.all([startServer(kafkaServer), startTables(keptDir)])
  try {
    await ensureTopics(kafkaOptions(kafka.address), await readTopics())
    const year = (await findYear(tables)) ?? (await makeYear(tables, rows, progress))
    if (year.rows !== rows)
      throw new WeirError('COMMAND_INVALID', `${keptDir} has ${year.rows} decisions, not ${rows}: name another --data.`)
    progress('comparing a day of every rollup with its raw rows')
    await auditSample(tables, year)
    // A year that was just filled merges for long; merges wait while questions are timed.
    await tables.client.command({ query: 'SYSTEM STOP MERGES' })
    const desk = await startConsole({ WEIR_KAFKA_BROKERS: kafka.address, WEIR_CLICKHOUSE_URL: tables.url })
    const asked = new Map<Question, readonly [Figures, Figures | undefined]>()
    let csv: Export
    try {
      for (const question of await questionsOf(tables, year)) {
        const api = await timed(tables, asksOfApi, async (at) => {
          const { status, body } = await desk.ask(`GET ${question.path(at)}`)
          if (status !== 200) throw new Error(`${question.path(at)} answered ${status}: ${JSON.stringify(body)}`)
        })
        const { raw } = question
        const overRaw = raw === undefined ? undefined : await timed(tables, asksOfRaw, (at) => tables.rows(raw(at)))
        asked.set(question, [api, overRaw])
        progress(`${question.label}: ${spread(api.ms).median.toFixed(0)} ms, CPU ${api.cpuMs.toFixed(0)} ms`)
      }
      csv = await readExport(desk, exportOf(year)).catch(async (cause: Error) => {
        await desk.kill() // Its log is then whole.
        throw new Error(`the export was cut off: ${(await desk.readLog()).split('\n').slice(-4).join('\n')}`, { cause })
      })
      progress('the export')
    } finally {
      await desk.close()
    }
    return {
      name: `usage: ${rows.toLocaleString('en-US')} decisions of a year; a day of every rollup equals its raw rows`,
      tables: [...(await tableOf(tables, asked)), exported(csv)],
      rows: [],
      ratios: [],
    }
  } finally {
    await tables.close()
    await kafka.close()
  }
}
