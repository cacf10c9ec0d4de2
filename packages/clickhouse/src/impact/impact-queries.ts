import { setImmediate } from 'node:timers/promises'
import type { HarmlessDemand } from '@weir/core/impact/refused-between.ts'
import { type ClickHouseClient, countsAsNumbers, readRows } from '../connect.ts'
import type { DecisionRow } from '../decision-queries.ts'
import { QuestionBoundMet, questionBounds, throwBound } from '../question-bounds.ts'

/** An edit's impact may take so long: a person waits for it. */
export const impactMsMax = 25_000
/** Minutes of subjects, or decisions of one, that are read for one answer: some seconds of a core. */
export const impactRowsMax = 1_000_000
/** Subjects that are looked at closely. */
export const impactSubjectsMax = 10_000

/** From when to when, the end left out. */
export interface TimeSpan {
  readonly fromMs: number
  readonly toMs: number
}

const settings = { clickhouse_settings: { ...countsAsNumbers, ...questionBounds(impactMsMax) } }
/** Denials without a valid credential met no limit. */
const hasSubject = "NOT startsWith(u.subject, '_')"
const quarterMs = 900_000

const within = (column: string, from = 'from', to = 'to') =>
  `${column} >= fromUnixTimestamp64Milli({${from}:Int64}) AND ${column} < fromUnixTimestamp64Milli({${to}:Int64})`

type Params = Readonly<Record<string, unknown>>

const namesOf = async (client: ClickHouseClient, query: string, params: Params): Promise<readonly string[]> => {
  const rows = await readRows<{ subject: string }>(client, `${query} LIMIT ${impactSubjectsMax + 1}`, params, settings)
  if (rows.length > impactSubjectsMax) throw new QuestionBoundMet('too-large', undefined)
  return rows.map(({ subject }) => subject)
}

/** Reads whom one of these limits refused. */
export const readRefused = (
  client: ClickHouseClient,
  limits: readonly string[],
  { fromMs: from, toMs: to }: TimeSpan,
): Promise<readonly string[]> =>
  namesOf(
    client,
    `SELECT u.subject AS subject FROM usage_1m AS u
     WHERE ${within('u.ts')} AND u.outcome = 'deny' AND u.denied_by IN {limits:Array(String)} AND ${hasSubject}
     GROUP BY subject ORDER BY subject`,
    { limits, from, to },
  ).catch(throwBound)

/** Reads who asked for more than is harmless; of these routes alone, if any are named. */
export const readBusy = (
  client: ClickHouseClient,
  { frameMs, units }: HarmlessDemand,
  routes: readonly string[] | undefined,
  { fromMs, toMs: to }: TimeSpan,
): Promise<readonly string[]> =>
  namesOf(
    client,
    `SELECT DISTINCT subject FROM (
       SELECT u.subject AS subject, intDiv(toUnixTimestamp(u.ts), {frame:UInt32}) AS frame
       FROM ${frameMs % quarterMs === 0 ? 'usage_15m' : 'usage_1m'} AS u
       WHERE ${within('u.ts')} AND ${hasSubject} ${routes === undefined ? '' : 'AND u.route IN {routes:Array(String)}'}
       GROUP BY subject, frame HAVING sum(u.cost) > {units:Float64})
     ORDER BY subject`,
    { frame: frameMs / 1_000, units, routes, from: fromMs - (fromMs % frameMs) - frameMs, to },
  ).catch(throwBound)

/** Reads which of these subjects have decisions whose cost was corrected. */
export const readCorrected = (
  client: ClickHouseClient,
  subjects: readonly string[],
  { fromMs: from, toMs: to }: TimeSpan,
): Promise<readonly string[]> =>
  namesOf(
    client,
    `SELECT DISTINCT d.subject AS subject FROM decisions AS d
     WHERE d.subject IN {subjects:Array(String)} AND ${within('d.ts')} AND d.count = 0 AND d.adjustment != 0`,
    { subjects, from, to },
  ).catch(throwBound)

/** Streams rows; a pause after each part of the answer lets other work of the process go on. */
async function* streamRows<Row>(client: ClickHouseClient, query: string, params: Params): AsyncIterable<Row> {
  const answer = await client
    .query({ query, query_params: { ...params }, format: 'JSONEachRow', ...settings })
    .catch(throwBound)
  for await (const part of answer.stream<Row>()) {
    for (const row of part) yield row.json()
    await setImmediate()
  }
}

/** What a subject asked for in one minute; before the minutes begin, in a quarter hour. */
export interface UsageMinuteRow {
  readonly subject: string
  readonly seconds: number
  readonly key_id: string
  readonly plan: string
  readonly route: string
  readonly method: string
  readonly denied_by: string
  readonly count: number
  readonly units: number
}

/** Reads the minutes of these subjects, each subject's together and ascending: quarter hours until `minutesFromMs`. */
export function readMinutes(
  client: ClickHouseClient,
  subjects: readonly string[],
  { fromMs: from, toMs: to, minutesFromMs: between }: TimeSpan & { readonly minutesFromMs: number },
): AsyncIterable<UsageMinuteRow> {
  const rowsOf = (table: string, start: string, end: string) =>
    `SELECT u.subject AS subject, toUnixTimestamp(u.ts) AS seconds, u.key_id AS key_id, toString(u.plan) AS plan,
       toString(u.route) AS route, toString(u.method) AS method, if(u.outcome = 'deny', toString(u.denied_by), '') AS denied_by,
       u.count AS n, u.cost AS c
     FROM ${table} AS u WHERE u.subject IN {subjects:Array(String)} AND ${within('u.ts', start, end)}`
  return streamRows(
    client,
    `SELECT subject, seconds, key_id, plan, route, method, denied_by, sum(n) AS count, sum(c) AS units
     FROM (${rowsOf('usage_15m', 'from', 'between')} UNION ALL ${rowsOf('usage_1m', 'between', 'to')})
     GROUP BY subject, seconds, key_id, plan, route, method, denied_by
     ORDER BY subject, seconds LIMIT ${impactRowsMax + 1}`,
    { subjects, from, to, between },
  )
}

/** A decision as a replay needs it. */
export interface RequestRow
  extends Pick<
    DecisionRow,
    'id' | 'ts_ms' | 'key_id' | 'plan' | 'route' | 'method' | 'cost' | 'count' | 'outcome' | 'denied_by' | 'ip'
  > {
  /** What limits counted by beyond the subject; none that counted by the subject alone. */
  readonly bys: readonly Readonly<Record<string, string>>[]
  readonly journal: string
  readonly seq: number
}

/** Counts the decisions of a subject's records. */
export async function countRequests(client: ClickHouseClient, subject: string, { fromMs: from, toMs: to }: TimeSpan) {
  const query = `SELECT count() AS rows FROM decisions AS d WHERE d.subject = {subject:String} AND ${within('d.ts')}`
  const [row] = await readRows<{ rows: number }>(client, query, { subject, from, to }, settings).catch(throwBound)
  return row?.rows ?? 0
}

/** Reads a subject's decisions in the order in which they were made. */
export const readRequests = (
  client: ClickHouseClient,
  subject: string,
  { fromMs: from, toMs: to }: TimeSpan,
): AsyncIterable<RequestRow> =>
  streamRows(
    client,
    `SELECT toString(d.id) AS id, toInt64(toUnixTimestamp64Milli(d.ts)) AS ts_ms, d.key_id AS key_id, d.plan AS plan,
       d.route AS route, d.method AS method, d.cost AS cost, d.count AS count, d.outcome AS outcome, d.denied_by AS denied_by,
       d.ip AS ip, arrayFilter(one -> notEmpty(one), d.limits.by) AS bys, toString(d.journal) AS journal, d.seq AS seq
     FROM decisions AS d WHERE d.subject = {subject:String} AND ${within('d.ts')} AND d.count > 0
     ORDER BY d.ts, d.journal, d.seq LIMIT ${impactRowsMax + 1}`,
    { subject, from, to },
  )

/** A correction as a replay needs it: after which record of its journal it was written. */
export interface CorrectionRow {
  readonly corrects: string
  readonly adjustment: number
  readonly journal: string
  readonly seq: number
  readonly received_ms: number
}

/** Reads the corrections of a subject's decisions, in the order in which they were metered. */
export const readCorrections = (
  client: ClickHouseClient,
  subject: string,
  { fromMs: from, toMs: to }: TimeSpan,
): Promise<readonly CorrectionRow[]> =>
  readRows<CorrectionRow>(
    client,
    `SELECT toString(d.corrects) AS corrects, d.adjustment AS adjustment, toString(d.journal) AS journal, d.seq AS seq,
       toInt64(toUnixTimestamp64Milli(d.received_at)) AS received_ms
     FROM decisions AS d WHERE d.subject = {subject:String} AND ${within('d.ts')} AND d.count = 0 AND d.adjustment != 0
     ORDER BY d.received_at, d.seq LIMIT ${impactRowsMax + 1}`,
    { subject, from, to },
    settings,
  ).catch(throwBound)
