import type { FilledSteps } from '@weir/core/usage/fill.ts'
import { type Ranking, type SortPart, sortKeyOf } from '@weir/core/usage/ranking.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import type { RollupQuery, Step } from '@weir/core/usage/usage-query.ts'
import { filtersOf, seenColumn } from './filters.ts'
import { withinReach } from './within-reach.ts'

const stepStart: Record<Exclude<Step, 'total'>, string> = {
  minute: 'toStartOfMinute(toTimeZone(u.ts, {zone:String}))',
  quarter_hour: 'toStartOfFifteenMinutes(toTimeZone(u.ts, {zone:String}))',
  hour: 'toStartOfHour(toTimeZone(u.ts, {zone:String}))',
  day: 'toStartOfDay(toTimeZone(u.ts, {zone:String}))',
  week: 'toDateTime(toStartOfWeek(toTimeZone(u.ts, {zone:String}), 1), {zone:String})',
  month: 'toDateTime(toStartOfMonth(toTimeZone(u.ts, {zone:String})), {zone:String})',
}

/**
 * A time in ISO 8601 with the offset that the zone has then. The offset is what the local clock shows, taken for UTC,
 * less the time itself: ClickHouse's `%z` and `timeZoneOffset` are wrong for zones that have crossed the date line.
 */
function iso8601(start: string): string {
  const clock = `formatDateTime(${start}, '%Y-%m-%dT%H:%i:%S')`
  const offset = `dateDiff('second', ${start}, parseDateTimeBestEffort(${clock}, 'UTC'))`
  const digits = (value: string) => `leftPad(toString(${value}), 2, '0')`
  const hours = digits(`intDiv(abs(${offset}), 3600)`)
  const minutes = digits(`intDiv(abs(${offset}), 60) % 60`)
  return `concat(${clock}, if(${offset} < 0, '-', '+'), ${hours}, ':', ${minutes})`
}

const addUnits = { second: 'addSeconds', day: 'addDays', month: 'addMonths' } as const

/** Whether a row is of the question's own span, not of the earlier one that it is compared with. */
export const isOfSpan = 'u.ts >= fromUnixTimestamp64Milli({from:Int64})'
const fromMsToMs = (from: string, to: string) =>
  `u.ts >= fromUnixTimestamp64Milli({${from}:Int64}) AND u.ts < fromUnixTimestamp64Milli({${to}:Int64})`

/** Which rows a question reads, and where their step begins: for earlier ones the step that is compared with theirs. */
function spanSql({ step, comparison, fromMs, toMs, timeZone }: RollupQuery<string>, bucketMs: number) {
  const floor = (ms: number) => Math.floor(ms / bucketMs) * bucketMs
  const own = { from: floor(fromMs), to: floor(toMs + bucketMs - 1), zone: timeZone }
  const start = step === 'total' ? undefined : stepStart[step]
  if (comparison === undefined) return { where: fromMsToMs('from', 'to'), start, params: own }
  const { fromMs: earlierMs, toMs: earlierEndMs, shift } = comparison
  return {
    where: `(${fromMsToMs('from', 'to')} OR ${fromMsToMs('earlier_from', 'earlier_to')})`,
    start: start && `if(${isOfSpan}, ${start}, ${addUnits[shift.unit]}(${start}, ${shift.count}))`,
    params: { ...own, earlier_from: floor(earlierMs), earlier_to: floor(earlierEndMs) },
  }
}

/** The table that answers a question. */
export interface RollupSource {
  readonly table: string
  readonly bucketMs: number
  /** Sums over the table as `u`, by the name of their column. */
  readonly sums: Readonly<Record<string, string>>
  /** The rows that are summed, by the condition of the question's time and reach. Absent: all of the table. */
  readonly rowsWithin?: (within: string) => string
}

/** Which rows of an answer are read. */
export interface PagePlace {
  /** The place of the last row before, as the answer is sorted; absent for the first page. */
  readonly after?: readonly string[] | undefined
  readonly rowsMax: number
  /** The steps of which every group has a row; absent: of those in which it was counted. */
  readonly filled?: FilledSteps | undefined
}

const placeTypes = { time: 'Int64', other: 'UInt8', measure: 'Int128', change: 'Float64', name: 'String' } as const

/** A change as it is sorted by: the largest first is what is negated, and one from nothing is the last. */
const changeSql = (change: string, descending: boolean) => `ifNull(${descending ? '-' : ''}${change}, inf)`

/** What the groups of a ranking are sorted by. */
const rankSql = (value: string, { measure, descending }: Ranking) =>
  measure === 'change' ? changeSql(`(${value})`, descending) : `${value} ${descending ? 'DESC' : 'ASC'}`

/** A part of the order as SQL over the grouped rows as `r`. */
function sortSql(part: SortPart): string {
  if (part.kind === 'time') return 'toInt64(toUnixTimestamp(r.start))'
  if (part.kind === 'other') return 'r.other'
  if (part.kind === 'change') return changeSql('r.change', part.descending)
  return part.kind === 'measure' && part.descending ? `-toInt128(r.${part.name})` : `r.${part.name}`
}

/** The order of an answer, and the condition that leaves out what the pages before had. */
function pageSql(question: RollupQuery<string>, { after, rowsMax }: PagePlace) {
  const parts = sortKeyOf(question)
  const sorted = parts.map(sortSql).join(', ')
  const values = parts.map(({ kind }, at) => `{after_${at}:${placeTypes[kind]}}`).join(', ')
  const params = Object.fromEntries((after ?? []).map((value, at) => [`after_${at}`, value]))
  const beyond = after === undefined || parts.length === 0 ? [] : [`tuple(${sorted}) > tuple(${values})`]
  // Of two spans the earlier may have more steps: January has days that February lacks.
  const isTooLate = question.comparison !== undefined && question.step !== 'total'
  const kept = isTooLate ? ['r.start < fromUnixTimestamp64Milli({to:Int64})', ...beyond] : beyond
  const where = kept.length === 0 ? '' : `WHERE ${kept.join(' AND ')}`
  return { sql: [where, sorted === '' ? '' : `ORDER BY ${sorted}`, `LIMIT ${rowsMax}`], params }
}

/**
 * Adds rows of nothing to those of some steps, so that every group has one of each. A step that is not all counted has
 * null instead of 0.
 */
function filledSql(rows: string, by: readonly string[], sums: readonly string[]): string {
  const groups = by.length === 0 ? 'SELECT 1' : `SELECT DISTINCT ${by.join(', ')} FROM (${rows})`
  const columns = [
    'toDateTime(k.step.1, {zone:String}) AS start',
    ...by.map((name) => `k.${name} AS ${name}`),
    ...sums.map((name) => `if(g.is_there = 1, g.${name}, if(k.step.2 = 1, 0, NULL)) AS ${name}`),
  ]
  const isSame = ['g.second = k.step.1', ...by.map((name) => `g.${name} = k.${name}`)]
  return `SELECT ${columns.join(', ')}
    FROM (SELECT *, arrayJoin(arrayZip({starts:Array(Int64)}, {counted:Array(UInt8)})) AS step FROM (${groups})) AS k
    LEFT JOIN (SELECT *, toInt64(toUnixTimestamp(start)) AS second, 1 AS is_there FROM (${rows})) AS g
    ON ${isSame.join(' AND ')}`
}

/** Writes a column of an answer, whose value is given as SQL. */
export type ColumnWriter = (name: string, value: string) => string

/** The SQL of a question. Names come from closed lists, values travel as parameters. */
export function rollupSql(
  { table, bucketMs, sums, rowsWithin }: RollupSource,
  reach: Reach,
  question: RollupQuery<string>,
  place: PagePlace,
  written: ColumnWriter = (_, value) => value,
): { query: string; params: Record<string, unknown>; columns: readonly string[] } {
  const { by, ranking } = question
  const within = withinReach(reach, 'u.subject')
  const seen = (name: string) => seenColumn(name, reach, (column) => `u.${column}`)
  const filters = filtersOf(seen, question)
  const page = pageSql(question, place)
  const span = spanSql(question, bucketMs)
  // A decision is a row of each limit that it met. ClickHouse 26.7 fails on some of these questions with ARRAY JOIN.
  const rowsOf = (rows: string) =>
    by.includes('met_limit') ? `SELECT *, arrayJoin(${seen('met_limit')}) AS met FROM (${rows}) AS u` : rows
  const isWithin = reach.isOwn ? `${span.where} AND ${within.sql}` : span.where
  const dimensions = by.map((name) => (name === 'met_limit' ? 'u.met' : seen(name)))
  const from = [
    `FROM ${rowsWithin === undefined ? table : `(${rowsOf(rowsWithin(isWithin))})`} AS u`,
    `WHERE ${isWithin}`,
    ...filters.sql,
    question.namePrefix === undefined ? '' : `AND startsWith(${dimensions[0]}, {name_prefix:String})`,
  ].filter((line) => line !== '')
  const names = dimensions.join(', ')
  const isTop =
    ranking?.top === undefined
      ? undefined
      : `(${names}) IN (SELECT ${names} ${from.join(' ')} GROUP BY ${names}
         ORDER BY ${rankSql(sums[ranking.measure] ?? '', ranking)}, ${names} LIMIT ${ranking.top})`
  const hasOther = isTop !== undefined && ranking?.other === true
  const columns = [
    ...(span.start === undefined ? [] : [['start', span.start] as const]),
    ...(hasOther ? [['other', `toBool(NOT ${isTop})`] as const] : []),
    ...by.map((name, at) => [name, hasOther ? `if(other, '', ${dimensions[at]})` : (dimensions[at] ?? '')] as const),
  ]
  const all = [...columns, ...Object.entries(sums), ...(hasOther ? [['groups', `uniqExact(${names})`] as const] : [])]
  const shown = all.map(([name]) =>
    name === 'start' ? `${iso8601('r.start')} AS ts` : `${written(name, `r.${name}`)} AS ${name}`,
  )
  const grouped = [
    `SELECT ${all.map(([name, sql]) => `${sql} AS ${name}`).join(', ')}`,
    ...from,
    isTop !== undefined && !hasOther ? `AND ${isTop}` : '',
    columns.length === 0 ? '' : `GROUP BY ${columns.map((_, at) => at + 1).join(', ')}`,
  ].filter((line) => line !== '')
  const rows = place.filled === undefined ? grouped.join('\n') : filledSql(grouped.join('\n'), by, Object.keys(sums))
  const query = [`SELECT ${shown.join(', ')}`, `FROM (${rows}) AS r`, ...page.sql]
  const params: Record<string, unknown> = {
    ...span.params,
    ...within.params,
    ...filters.params,
    ...page.params,
    ...place.filled,
    name_prefix: question.namePrefix,
  }
  const named = all.map(([name]) => (name === 'start' ? 'ts' : name))
  return { query: query.filter((line) => line !== '').join('\n'), params, columns: named }
}
