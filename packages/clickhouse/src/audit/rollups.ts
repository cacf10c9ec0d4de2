import { type ClickHouseClient, readRows } from '../connect.ts'

/** A span of time, in milliseconds since the epoch: `fromMs` is in it, `toMs` is not. */
export interface Span {
  readonly fromMs: number
  readonly toMs: number
  /** Limits the span to these subjects, where a table has any. */
  readonly subjects?: readonly string[]
}

const at = (ms: number) => `fromUnixTimestamp64Milli(${Math.floor(ms)}, 'UTC')`

/** Returns a text as ClickHouse reads it between quotes. */
export const quoted = (text: string): string => `'${text.replaceAll(/[\\']/g, '\\$&')}'`

const listOf = (subjects: readonly string[]) => subjects.map(quoted).join(', ')

/** Returns the condition that a row's `ts`, and its `subject` if the span names any, are in the span. */
export const withinSpan = ({ fromMs, toMs, subjects }: Span): string => {
  const time = `ts >= ${at(fromMs)} AND ts < ${at(toMs)}`
  return subjects === undefined ? time : `${time} AND subject IN (${listOf(subjects)})`
}

/** A table that views fill from the raw rows. */
export interface Rollup {
  /** `usage_15m` */
  readonly table: string
  /** The raw table that its views read: `decisions`. */
  readonly source: string
  /** Queries of its views. The rollup should be the sum of them all. */
  readonly selects: readonly string[]
  readonly columns: readonly string[]
  /** Columns that name a bucket, its time `ts` among them. */
  readonly keys: readonly string[]
  /** Columns of whole numbers that are summed. */
  readonly sums: readonly string[]
  /** Those of `sums` that have no sign. */
  readonly unsigned: ReadonlySet<string>
  /** A record adds to buckets of the subjects above its own too. */
  readonly countsAbove: boolean
  /** How long both its rows and their raw rows are kept; undefined for ever. */
  readonly keptMs: number | undefined
}

const dayMs = 86_400_000
const unitMs: Readonly<Record<string, number>> = { Day: dayMs, Week: 7 * dayMs, Month: 28 * dayMs, Year: 365 * dayMs }

/** How long `TTL ts + toIntervalDay(35)` keeps a row, at least. */
function keptMsOf(createQuery: string): number | undefined {
  const [, unit = '', count] = /TTL [^,]*toInterval(Day|Week|Month|Year)\((\d+)\)/.exec(createQuery) ?? []
  const ms = unitMs[unit]
  return ms === undefined ? undefined : ms * Number(count)
}

const shorter = (one: number | undefined, other: number | undefined) =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)

interface TableRow {
  readonly name: string
  readonly as_select: string
  readonly create_table_query: string
}

interface ColumnRow {
  readonly table: string
  readonly name: string
  readonly type: string
  readonly is_in_sorting_key: number
}

const isSummed = ({ type, is_in_sorting_key: isKey }: ColumnRow) =>
  isKey === 0 && /^(SimpleAggregateFunction\(sum, )?U?Int64\)?$/.test(type)

/** The target and the source of a view that reads one of Weir's tables; undefined for any other table. */
function readView({ as_select: select, create_table_query: create }: TableRow) {
  const [, target] = /^CREATE MATERIALIZED VIEW \S+ TO \w+\.(\w+)/.exec(create) ?? []
  const [, source] = /FROM \w+\.(\w+)/.exec(select) ?? []
  return target === undefined || source === undefined ? undefined : { target, source, select }
}

/** Finds every rollup over time by ClickHouse's own description: a migration that adds one needs no change here. */
export async function findRollups(client: ClickHouseClient): Promise<Rollup[]> {
  const [tables, columns] = await Promise.all([
    readRows<TableRow>(
      client,
      'SELECT name, as_select, create_table_query FROM system.tables WHERE database = currentDatabase() ORDER BY name',
    ),
    readRows<ColumnRow>(
      client,
      'SELECT table, name, type, is_in_sorting_key FROM system.columns WHERE database = currentDatabase() ORDER BY table, position',
    ),
  ])
  const views = tables.map(readView).filter((view) => view !== undefined)
  // ClickHouse silently leaves out what its user may not see: compared with no view, every rollup would be right.
  if (views.length === 0) throw new Error(`no views are visible: GRANT SHOW TABLES ON ${client.database}.*`)
  return tables.flatMap(({ name, create_table_query: create }) => {
    const own = columns.filter(({ table }) => table === name)
    const keys = own.filter((column) => column.is_in_sorting_key === 1).map((column) => column.name)
    const summed = own.filter(isSummed)
    const mine = views.filter(({ target }) => target === name)
    const [first] = mine
    if (first === undefined || !keys.includes('ts')) return []
    return [
      {
        table: name,
        source: first.source,
        selects: mine.map(({ select }) => select),
        columns: own.map((column) => column.name),
        keys,
        sums: summed.map((column) => column.name),
        unsigned: new Set(summed.filter(({ type }) => type.includes('UInt64')).map((column) => column.name)),
        countsAbove: mine.some(({ select }) => /\) AS subject\b/.test(select)),
        keptMs: shorter(
          keptMsOf(create),
          keptMsOf(tables.find((one) => one.name === first.source)?.create_table_query ?? ''),
        ),
      },
    ]
  })
}

/** Limits every reading of the raw table in a query to rows that add to the span, however deep it is nested. */
function onlySpan({ source, countsAbove }: Rollup, { subjects, ...time }: Span): string {
  const isOfSome = (list: string) => `(subject IN (${list}) OR hasAny(parents, [${list}]))`
  const isWithin =
    subjects !== undefined && countsAbove
      ? `${withinSpan(time)} AND ${isOfSome(listOf(subjects))}`
      : withinSpan({ ...time, ...(subjects && { subjects }) })
  return `additional_table_filters = {'${source}': ${quoted(isWithin)}}`
}

/** What such rows add to other subjects is left out. */
const ownBuckets = ({ subjects }: Span) => (subjects === undefined ? '' : `WHERE subject IN (${listOf(subjects)})`)

/**
 * The statements that delete a rollup's buckets of a span and make them from the raw rows, in their order. Between them
 * a query sees little of the span; a crash there leaves it so until the next repair. Rows that arrive meanwhile may be
 * counted twice or not at all: compare again afterwards.
 */
export function rebuildQueries(rollup: Rollup, span: Span): string[] {
  const { table, selects, columns } = rollup
  const names = columns.join(', ')
  // Without deduplication: the same rows may have been inserted before, and deleted since.
  const inserts = selects.map(
    (select) => `INSERT INTO ${table} (${names}) SELECT ${names} FROM (${select}) ${ownBuckets(span)}
      SETTINGS insert_deduplicate = 0, async_insert = 0, ${onlySpan(rollup, span)}`,
  )
  return [`DELETE FROM ${table} WHERE ${withinSpan(span)} SETTINGS lightweight_deletes_sync = 2`, ...inserts]
}

/** One row for each bucket, without those that add nothing: ClickHouse drops such rows when it merges. */
function bucketsOf({ keys, sums }: Rollup, parts: readonly string[], where = ''): string {
  const names = [...keys, ...sums.map((name) => `toInt64(${name}) AS n_${name}`)].join(', ')
  const union = parts.map((part) => `SELECT ${names} FROM (${part}) ${where}`).join(' UNION ALL ')
  const summed = sums.map((name) => `sum(n_${name}) AS sum_${name}`)
  const something = sums.map((name) => `sum_${name} != 0`).join(' OR ')
  return `SELECT ${[...keys, ...summed].join(', ')} FROM (${union}) GROUP BY ${keys.join(', ')} HAVING ${something}`
}

/** A query and the settings that it needs behind it. */
export interface BucketsQuery {
  readonly query: string
  readonly settings: string
}

/** Returns the query of the buckets that the rollup should have in a span, by the raw rows. */
export const wantedBuckets = (rollup: Rollup, span: Span): BucketsQuery => ({
  query: bucketsOf(rollup, rollup.selects, ownBuckets(span)),
  settings: `SETTINGS ${onlySpan(rollup, span)}`,
})

/** Returns the query of the buckets that the rollup has. */
export const presentBuckets = (rollup: Rollup, span: Span): BucketsQuery => ({
  query: bucketsOf(rollup, [`SELECT * FROM ${rollup.table} WHERE ${withinSpan(span)}`]),
  settings: '',
})
