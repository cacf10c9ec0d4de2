import type { DecisionQuery } from '@weir/api/query/decision-query.ts'
import { type ClickHouseClient, decisionFormat, readRows } from '@weir/clickhouse/connect.ts'
import { pageMsMax, questionBounds, throwBound } from '@weir/clickhouse/question-bounds.ts'
import { withinReach, withinTime } from '@weir/clickhouse/within-reach.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { filtersOf, seenColumn } from '../usage/filters.ts'
import { type DecisionRelated, type DecisionRow, decisionSelect } from './decision-queries.ts'

/** A decision of a list, with what came after it. */
export interface ListedDecision extends Pick<DecisionRelated, 'outcome' | 'corrections'> {
  readonly row: DecisionRow
}

/** Which decisions of an answer are read. */
export interface DecisionPosition {
  /** The last decision before, the newest being first; absent for the first page. */
  readonly after?: { readonly tsMs: number; readonly id: string } | undefined
  readonly rowsMax: number
}

const settings = { clickhouse_settings: { ...decisionFormat.clickhouse_settings, ...questionBounds(pageMsMax) } }
/** More subjects than this on one page are not named: ids and times find the rest of their rows. */
const namedSubjectsMax = 100
const timeOf = (name: string) => `fromUnixTimestamp64Milli({${name}:Int64})`
/** An answer may take as long as its stream. */
const answered = `o.ts >= ${timeOf('from')} - INTERVAL 1 MINUTE AND o.ts < ${timeOf('to')} + INTERVAL 1 DAY`

/** Outcomes do not say whose tree they are of: their decisions do. */
const ofOutcomes = (reach: Reach) => (reach.hasTrees ? 'true' : withinReach(reach, 'o.subject').sql)

/** The conditions of a question: everything but which page. */
function conditionsOf(reach: Reach, query: DecisionQuery) {
  const within = withinReach(reach, 'd.subject', 'd.parents')
  const filters = filtersOf((name) => seenColumn(name, reach, (column) => `d.${column}`), query)
  // A correction has the time of the decision that it corrects.
  const corrected = `(SELECT c.subject, c.corrects FROM decisions AS c
    WHERE ${withinTime('c.ts')} AND c.count = 0 AND ${withinReach(reach, 'c.subject', 'c.parents').sql})`
  const sql = [
    `${withinTime('d.ts')} AND d.count > 0 AND ${within.sql}`,
    ...filters.sql,
    query.minCost > 0 ? 'AND d.cost >= {min_cost:UInt64}' : '',
    query.statuses.length > 0
      ? `AND (d.subject, d.id) IN (SELECT o.subject, o.id FROM outcomes AS o
         WHERE ${answered} AND ${ofOutcomes(reach)} AND o.status IN {statuses:Array(UInt16)})`
      : '',
    query.corrected ? `AND (d.subject, d.id) IN ${corrected}` : '',
    query.unsettled ? `AND notEmpty(d.held) AND (d.subject, d.id) NOT IN ${corrected}` : '',
  ]
  const { fromMs: from, toMs: to, minCost: min_cost, statuses } = query
  return { sql: sql.join('\n'), params: { from, to, min_cost, statuses, ...within.params, ...filters.params } }
}

type OfDecision<Row> = Row & { readonly decision: string }

/**
 * Reads a page of decisions within a caller's reach, the newest first. Rejects with ClickHouse's error or
 * `QuestionBoundMet`.
 */
export async function listDecisions(
  client: ClickHouseClient,
  reach: Reach,
  query: DecisionQuery,
  { after, rowsMax }: DecisionPosition,
): Promise<readonly ListedDecision[]> {
  const { sql, params } = conditionsOf(reach, query)
  const read = <Row>(text: string, more: object) =>
    readRows<Row>(client, text, { ...params, ...more }, settings).catch(throwBound)
  const behind = after === undefined ? '' : `AND (d.ts, toString(d.id)) < (${timeOf('after_ms')}, {after_id:String})`
  const rows = await read<DecisionRow>(
    `SELECT ${decisionSelect} FROM decisions AS d WHERE ${sql} ${behind}
     ORDER BY d.ts DESC, toString(d.id) DESC LIMIT ${rowsMax}`,
    { after_ms: after?.tsMs ?? 0, after_id: after?.id ?? '' },
  )
  if (rows.length === 0) return []
  const subjects = [...new Set(rows.map(({ subject }) => subject))]
  const ofPage = (table: 'o' | 'd') =>
    subjects.length <= namedSubjectsMax
      ? `${table}.subject IN {subjects:Array(String)}`
      : table === 'o'
        ? ofOutcomes(reach)
        : withinReach(reach, 'd.subject', 'd.parents').sql
  const page = {
    ids: rows.map(({ id }) => id),
    // Of several under one id nobody knows which is meant.
    answered: rows.flatMap(({ id, count }) => (count === 1 ? id : [])),
    subjects: subjects.slice(0, namedSubjectsMax),
    from: rows.at(-1)?.ts_ms,
    to: (rows[0]?.ts_ms ?? 0) + 1,
  }
  const [outcomes, corrections] = await Promise.all([
    read<OfDecision<NonNullable<ListedDecision['outcome']>>>(
      `SELECT toString(o.id) AS decision, o.status AS status, o.duration_ms AS duration_ms, o.upstream AS upstream, o.error AS error
       FROM outcomes AS o WHERE ${ofPage('o')} AND o.id IN {answered:Array(UUID)} AND ${answered}`,
      page,
    ),
    read<OfDecision<ListedDecision['corrections'][number]>>(
      `SELECT toString(d.corrects) AS decision, toString(d.id) AS id, d.adjustment AS adjustment, d.count_adjustment AS count_adjustment, d.charged AS charged, d.units AS units, d.dims AS dims, d.basis AS basis
       FROM decisions AS d WHERE ${ofPage('d')} AND ${withinTime('d.ts')}
         AND d.count = 0 AND d.corrects IN {ids:Array(UUID)} ORDER BY d.id`,
      page,
    ),
  ])
  const outcomeOf = new Map(outcomes.map(({ decision, ...outcome }) => [decision, outcome]))
  const correctionsOf = Map.groupBy(corrections, ({ decision }) => decision)
  return rows.map((row) => ({
    row,
    outcome: outcomeOf.get(row.id),
    corrections: (correctionsOf.get(row.id) ?? []).map(({ decision: _, ...correction }) => correction),
  }))
}
