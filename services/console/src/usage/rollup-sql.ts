import type { Step } from '@weir/api/query/columns.ts'
import type { StepShift } from '@weir/api/query/comparison.ts'
import type { FilledSteps } from '@weir/api/query/fill.ts'
import { type Ranking, type SortPart, sortKeyOf } from '@weir/api/query/ranking.ts'
import type { RollupQuery } from '@weir/api/query/usage-query.ts'
import { withinReach } from '@weir/clickhouse/within-reach.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { filtersOf, nameInSql, seenColumn, seenParents } from './filters.ts'

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

/** A start of a step, moved. Where midnight is skipped, a day moved there would begin the day before, at 23:00. */
function shiftedSql(start: string, { unit, count }: StepShift): string {
  const shifted = `${addUnits[unit]}(${start}, ${count})`
  return unit === 'second' ? shifted : `toStartOfDay(addHours(${shifted}, 2))`
}

const addUnits = { second: 'addSeconds', day: 'addDays', month: 'addMonths' } as const

/**
 * A time of a question. Compared as the columns of rollups are: as a DateTime64 each of their rows would be converted,
 * which takes as long as half of the query.
 */
export const timeSql = (name: string) => `toDateTime({${name}:UInt32}, 'UTC')`
/** The last second that these columns can have; questions reach beyond. */
const secondMax = 2 ** 32 - 1
/** The second in which the bucket of a time begins, as far as the columns go. */
export const bucketStart = (ms: number, bucketMs: number) =>
  Math.max(0, Math.min(secondMax, (Math.floor(ms / bucketMs) * bucketMs) / 1_000))

/** Whether a row is of the question's own span, not of the earlier one that it is compared with. */
export const isOfSpan = `u.ts >= ${timeSql('from')}`
const between = (from: string, to: string) => `u.ts >= ${timeSql(from)} AND u.ts < ${timeSql(to)}`

/** Which rows a question reads, and where their step begins: for earlier ones the step that is compared with theirs. */
function spanSql({ step, comparison, fromMs, toMs, timeZone }: RollupQuery<string>, bucketMs: number) {
  const at = (ms: number) => bucketStart(ms, bucketMs)
  const own = { from: at(fromMs), to: at(toMs + bucketMs - 1), zone: timeZone }
  const start = step === 'total' ? undefined : stepStart[step]
  if (comparison === undefined) return { where: between('from', 'to'), start, params: own }
  const { fromMs: earlierMs, toMs: earlierEndMs, shift } = comparison
  return {
    where: `(${between('from', 'to')} OR ${between('earlier_from', 'earlier_to')})`,
    start: start && `if(${isOfSpan}, ${start}, ${shiftedSql(start, shift)})`,
    params: { ...own, earlier_from: at(earlierMs), earlier_to: at(earlierEndMs) },
  }
}

/** Columns as SQL, by their names. */
type Columns = Readonly<Record<string, string>>

/** The table that answers a question. */
export interface RollupSource {
  readonly table: string
  readonly bucketMs: number
  /** A column that can be asked for as SQL over the table as `u`. Absent: each is a column of the table. */
  readonly columnOf?: (name: string) => string
  /** The column with the subject's ancestors; absent for a table that has none. */
  readonly parents?: string
  /** Sums over the table as `u`. */
  readonly sums: Columns
  /** What follows from these sums, whose SQL is given. */
  readonly derived?: (sums: Columns) => Columns
  /** The rows that are summed, by the condition of the question's time and reach. Absent: all of the table. */
  readonly rowsWithin?: (within: string) => string
}

/** Which rows of an answer are read. */
export interface PagePosition {
  /** The position of the last row before, as the answer is sorted; absent for the first page. */
  readonly after?: readonly string[] | undefined
  readonly rowsMax: number
  /** The steps of which every group has a row; absent: of those in which it was counted. */
  readonly filled?: FilledSteps | undefined
}

const placeTypes = { time: 'Int64', other: 'UInt8', measure: 'Int128', change: 'Float64', name: 'String' } as const

/** A change as it is sorted by: the largest first is what is negated, and one from nothing is the last. */
const changeSql = (change: string, descending: boolean) => `ifNull(${descending ? '-' : ''}${change}, inf)`

/** What the groups of a ranking are sorted by. */
const rankSql = (value: string, { measure, descending }: Pick<Ranking, 'measure' | 'descending'>) =>
  measure === 'change' ? changeSql(`(${value})`, descending) : `${value} ${descending ? 'DESC' : 'ASC'}`

/** A part of the order as SQL over the grouped rows as `r`. */
function sortSql(part: SortPart): string {
  if (part.kind === 'time') return 'toInt64(toUnixTimestamp(r.start))'
  if (part.kind === 'other') return 'r.other'
  if (part.kind === 'change') return changeSql('r.change', part.descending)
  return part.kind === 'measure' && part.descending ? `-toInt128(r.${part.name})` : `r.${nameInSql(part.name)}`
}

/** The order of an answer, and the condition that leaves out what the pages before had. */
function pageSql(question: RollupQuery<string>, { after, rowsMax }: PagePosition) {
  const parts = sortKeyOf(question)
  const sorted = parts.map(sortSql).join(', ')
  const values = parts.map(({ kind }, at) => `{after_${at}:${placeTypes[kind]}}`).join(', ')
  const params = Object.fromEntries((after ?? []).map((value, at) => [`after_${at}`, value]))
  const beyond = after === undefined || parts.length === 0 ? [] : [`tuple(${sorted}) > tuple(${values})`]
  // Of two spans the earlier may have more steps: January has days that February lacks.
  const isTooLate = question.comparison !== undefined && question.step !== 'total'
  const kept = isTooLate ? [`r.start < ${timeSql('to')}`, ...beyond] : beyond
  const where = kept.length === 0 ? '' : `WHERE ${kept.join(' AND ')}`
  return { sql: [where, sorted === '' ? '' : `ORDER BY ${sorted}`, `LIMIT ${rowsMax}`], params }
}

/**
 * Adds rows of nothing to those of some steps, so that every group has one of each. A step that is not all counted has
 * null instead of 0. No row is lost, whatever its step.
 */
function filledSql(rows: string, by: readonly string[], sums: readonly string[]): string {
  const groups = by.length === 0 ? 'SELECT 1' : `SELECT DISTINCT ${by.join(', ')} FROM (${rows})`
  const columns = [
    'toDateTime(if(g.is_there = 1, g.second, k.step.1), {zone:String}) AS start',
    ...by.map((name) => `if(g.is_there = 1, g.${name}, k.${name}) AS ${name}`),
    ...sums.map((name) => `if(g.is_there = 1, g.${name}, if(k.step.2 = 1, 0, NULL)) AS ${name}`),
  ]
  const isSame = ['g.second = k.step.1', ...by.map((name) => `g.${name} = k.${name}`)]
  return `SELECT ${columns.join(', ')}
    FROM (SELECT *, arrayJoin(arrayZip({starts:Array(Int64)}, {counted:Array(UInt8)})) AS step FROM (${groups})) AS k
    FULL JOIN (SELECT *, toInt64(toUnixTimestamp(start)) AS second, 1 AS is_there FROM (${rows})) AS g
    ON ${isSame.join(' AND ')}`
}

/** Rows as `u`: what they are grouped by, their sums, and where they are read. */
interface ReadRows {
  readonly dimensions: readonly string[]
  readonly sums: Columns
  readonly from: readonly string[]
}

/** The rows that a question is about, and where the step of one begins. */
function readRows(source: RollupSource, reach: Reach, question: RollupQuery<string>) {
  const { table, bucketMs, sums, rowsWithin, columnOf = (column: string) => `u.${column}` } = source
  const { by } = question
  const within = withinReach(reach, 'u.subject', source.parents)
  const seen = (name: string) => seenColumn(name, reach, columnOf)
  const filters = filtersOf(seen, question)
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
    ...(question.within === undefined
      ? []
      : [
          `AND (u.subject IN {within:Array(String)} OR hasAny(${seenParents(reach, source.parents ?? '[]')}, {within:Array(String)}))`,
        ]),
    ...(question.namePrefix === undefined ? [] : [`AND startsWith(${dimensions[0]}, {name_prefix:String})`]),
  ]
  const params = {
    ...span.params,
    ...within.params,
    ...filters.params,
    name_prefix: question.namePrefix,
    within: question.within,
  }
  return { read: { dimensions, sums, from }, start: span.start, params }
}

/**
 * The same rows, and which of them are of the groups that come first over the whole span. Without steps they are summed
 * by group, and the row of all others is the sum of these: the table is read once.
 */
function topRows(
  read: ReadRows,
  step: RollupQuery<string>['step'],
  by: readonly string[],
  { derived }: RollupSource,
  { top, ...ranking }: Ranking,
): { readonly rows: ReadRows; readonly isTop: string } {
  const { dimensions, sums, from } = read
  const names = dimensions.join(', ')
  const { [ranking.measure]: value = '' } = { ...sums, ...derived?.(sums) }
  const order = `ORDER BY ${rankSql(value, ranking)}, ${names}`
  const grouped = `${from.join('\n')}\nGROUP BY ${names}`
  if (step !== 'total') {
    return { rows: read, isTop: `(${names}) IN (SELECT ${names} ${grouped} ${order} LIMIT ${top})` }
  }
  const columns = [
    ...by.map((name, at) => `${dimensions[at]} AS ${name}`),
    ...Object.entries(sums).map(([name, sql]) => `${sql} AS ${name}`),
    `row_number() OVER (${order}) <= ${top} AS is_top`,
  ]
  const rows = {
    dimensions: by.map((name) => `u.${name}`),
    sums: Object.fromEntries(Object.keys(sums).map((name) => [name, `sum(u.${name})`])),
    from: [`FROM (SELECT ${columns.join(', ')}\n${grouped}) AS u`, 'WHERE true'],
  }
  return { rows, isTop: 'u.is_top' }
}

/** Writes a column of an answer, whose value is given as SQL. */
export type ColumnWriter = (name: string, value: string) => string

/** The SQL of a question. Names come from closed lists, values travel as parameters. */
export function rollupSql(
  source: RollupSource,
  reach: Reach,
  question: RollupQuery<string>,
  position: PagePosition,
  written: ColumnWriter = (_, value) => value,
): { query: string; params: Record<string, unknown>; columns: readonly string[] } {
  const { ranking } = question
  const by = question.by.map(nameInSql)
  const { read, start, params } = readRows(source, reach, question)
  const page = pageSql(question, position)
  const top = ranking?.top === undefined ? undefined : topRows(read, question.step, by, source, ranking)
  const { dimensions, sums, from } = top?.rows ?? read
  const hasOther = top !== undefined && ranking?.other === true
  const columns = [
    ...(start === undefined ? [] : [['start', start] as const]),
    // Not by the name `other` below: over a Distributed table ClickHouse 26.7 takes that for another expression.
    ...(hasOther ? [['other', `toBool(NOT ${top.isTop})`] as const] : []),
    ...by.map(
      (name, at) => [name, hasOther ? `if(${top.isTop}, ${dimensions[at]}, '')` : (dimensions[at] ?? '')] as const,
    ),
  ]
  const summed = { ...sums, ...source.derived?.(sums) }
  const groups = hasOther ? [['groups', `uniqExact(${dimensions.join(', ')})`] as const] : []
  const all = [...columns, ...Object.entries(summed), ...groups]
  const asked = new Map(question.by.map((name) => [nameInSql(name), name]))
  const named = all.map(([name]) => (name === 'start' ? 'ts' : (asked.get(name) ?? name)))
  const shown = all.map(([inner], at) => {
    const name = named[at] ?? inner
    const alias = name === inner || inner === 'start' ? name : `\`${name}\``
    return `${inner === 'start' ? iso8601('r.start') : written(name, `r.${inner}`)} AS ${alias}`
  })
  const grouped = [
    `SELECT ${all.map(([name, sql]) => `${sql} AS ${name}`).join(', ')}`,
    ...from,
    ...(top !== undefined && !hasOther ? [`AND ${top.isTop}`] : []),
    ...(columns.length === 0 ? [] : [`GROUP BY ${columns.map((_, at) => at + 1).join(', ')}`]),
  ].join('\n')
  const rows = position.filled === undefined ? grouped : filledSql(grouped, by, Object.keys(summed))
  const query = [`SELECT ${shown.join(', ')}`, `FROM (${rows}) AS r`, ...page.sql]
  return {
    query: query.filter((line) => line !== '').join('\n'),
    params: { ...params, ...page.params, ...position.filled },
    columns: named,
  }
}
