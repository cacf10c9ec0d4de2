import { setImmediate } from 'node:timers/promises'
import { type ClickHouseClient, countsAsNumbers, readRows } from '@weir/clickhouse/connect.ts'
import { questionBounds, throwBound } from '@weir/clickhouse/question-bounds.ts'
import { withinTime } from '@weir/clickhouse/within-reach.ts'
import type { StoredDecision } from '@weir/contracts/decision-columns.ts'
import type { Period } from '@weir/core/prices/forecast.ts'

/** An edit's impact may take so long: a person waits for it. */
export const impactMsMax = 25_000
/** Records that are decided again for one answer: some seconds of a core. */
export const impactRowsMax = 1_000_000
/** Spans begin and end with the buckets of the rollups that say how much of the traffic an answer is about. */
export const impactStepMs = 900_000

const settings = { clickhouse_settings: { ...countsAsNumbers, ...questionBounds(impactMsMax) } }

type Params = Readonly<Record<string, unknown>>

/** Reads the subjects with the most decisions. Those of denials without a valid credential met no limit. */
export async function readMostUsed(client: ClickHouseClient, top: number, { fromMs: from, toMs: to }: Period) {
  const query = `SELECT u.subject AS subject FROM usage_15m AS u
     WHERE ${withinTime('u.ts')} AND NOT startsWith(u.subject, '_')
     GROUP BY subject ORDER BY sum(u.count) DESC, subject LIMIT {top:UInt16}`
  const rows = await readRows<{ subject: string }>(client, query, { top, from, to }, settings).catch(throwBound)
  return rows.map(({ subject }) => subject)
}

/** Counts all decisions. */
export async function countDecisions(client: ClickHouseClient, { fromMs: from, toMs: to }: Period) {
  const query = `SELECT sum(u.count) AS decisions FROM usage_total_15m AS u WHERE ${withinTime('u.ts')}`
  const [row] = await readRows<{ decisions: number }>(client, query, { from, to }, settings).catch(throwBound)
  return row?.decisions ?? 0
}

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

/** A decision as a replay needs it. */
export interface RequestRow
  extends Pick<
    StoredDecision,
    'id' | 'ts_ms' | 'key_id' | 'plan' | 'route' | 'method' | 'cost' | 'count' | 'outcome' | 'denied_by' | 'ip'
  > {
  /** What limits counted by beyond the subject; none that counted by the subject alone. */
  readonly bys: readonly Readonly<Record<string, string>>[]
  readonly journal: string
  /** 0 where it has its number only from after the requests that share it. */
  readonly seq: number
  /** Admissions that its record stands for, at the first of them; else 1. */
  readonly shared: number
}

/** Counts the rows that `readRequests` reads. */
export async function countRecords(client: ClickHouseClient, subject: string, { fromMs: from, toMs: to }: Period) {
  const query = `SELECT sum(if(d.outcome = 'allow', d.count, 1)) AS records FROM decisions AS d
     WHERE d.subject = {subject:String} AND ${withinTime('d.ts')} AND d.count > 0`
  const [row] = await readRows<{ records: number }>(client, query, { subject, from, to }, settings).catch(throwBound)
  return row?.records ?? 0
}

/**
 * Reads a subject's decisions in the order in which they were made. Admissions that share a record are a row each,
 * spread evenly from the first to the end of their second.
 */
export const readRequests = (
  client: ClickHouseClient,
  subject: string,
  { fromMs: from, toMs: to }: Period,
): AsyncIterable<RequestRow> =>
  streamRows(
    client,
    `WITH toInt64(toUnixTimestamp64Milli(d.ts)) AS first_ms SELECT toString(d.id) AS id,
       first_ms + intDiv(part * (1000 - first_ms % 1000), d.count) AS ts_ms, d.key_id AS key_id, d.plan AS plan,
       d.route AS route, d.method AS method, d.cost AS cost, if(d.outcome = 'allow', 1, d.count) AS count,
       if(d.outcome = 'allow' AND part = 0, d.count, 1) AS shared, d.outcome AS outcome, d.denied_by AS denied_by,
       d.ip AS ip, arrayFilter(one -> notEmpty(one), d.limits.by) AS bys, toString(d.journal) AS journal, if(d.count = 1, d.seq, 0) AS seq
     FROM decisions AS d ARRAY JOIN range(if(d.outcome = 'allow', d.count, 1)) AS part
     WHERE d.subject = {subject:String} AND ${withinTime('d.ts')} AND d.count > 0
     ORDER BY ts_ms, d.journal, d.seq LIMIT ${impactRowsMax + 1}`,
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
  { fromMs: from, toMs: to }: Period,
): Promise<readonly CorrectionRow[]> =>
  readRows<CorrectionRow>(
    client,
    `SELECT toString(d.corrects) AS corrects, d.adjustment AS adjustment, toString(d.journal) AS journal, d.seq AS seq,
       toInt64(toUnixTimestamp64Milli(d.received_at)) AS received_ms
     FROM decisions AS d WHERE d.subject = {subject:String} AND ${withinTime('d.ts')} AND d.count = 0 AND d.adjustment != 0
     ORDER BY d.received_at, d.seq LIMIT ${impactRowsMax + 1}`,
    { subject, from, to },
    settings,
  ).catch(throwBound)
