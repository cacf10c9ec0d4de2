import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import type { EstimatedLimit } from '@weir/core/impact/estimate-subject.ts'
import { Replay, type ReplayParts } from '@weir/core/impact/replay.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { PolicyEdit } from '@weir/policy/impact/policy-edit.ts'
import { explainLimits } from '@weir/policy/match/resolve-limits.ts'
import type { ClickHouseClient } from '../connect.ts'
import { QuestionBoundMet } from '../question-bounds.ts'
import { assumedAlways, emptyAt, type Impact, ImpactSums } from './impact.ts'
import {
  countRequests,
  impactMsMax,
  impactRowsMax,
  type RequestRow,
  readCorrections,
  readRequests,
  type TimeSpan,
} from './impact-queries.ts'
import { PendingCorrections } from './pending-corrections.ts'
import { Doubts, doubtful, requestOf } from './replayed-request.ts'

/** When the oldest charge that a limit may count at an instant was made. */
function countsFrom({ algorithm, span, size, capacity, blockMs }: Limit, periodStartMs: number, ms: number): number {
  if (span.kind === 'period') return periodStartMs - blockMs
  if (algorithm === 'token_bucket') return ms - Math.ceil((capacity * span.ms) / size) - blockMs
  return ms - (ms % span.ms) - (algorithm === 'fixed_window' ? 0 : span.ms) - blockMs
}

/** Where a replay begins: early enough for every count that runs at `fromMs`, if that is not too much to read. */
async function startOf(
  client: ClickHouseClient,
  edit: PolicyEdit,
  { subject: id, fromMs, toMs }: TimeSpan & { readonly subject: string },
  boundariesAt: ReplayParts['periodBoundaries'],
): Promise<number> {
  const { policy, subjectOf } = edit.after
  const subject = subjectOf(id)
  const own = subject && explainLimits(policy, subject, undefined).map(({ limit }) => limit)
  const { timeZone, anchor } = subject ?? { timeZone: 'UTC', anchor: 1 }
  const starts = (own ?? [...policy.limits.values()]).map((limit) => {
    const start = limit.span.kind === 'period' ? boundariesAt(limit.span.unit, timeZone, anchor, fromMs)[0] : 0
    return countsFrom(limit, start, fromMs)
  })
  const startMs = Math.min(fromMs, ...starts)
  const rows = await countRequests(client, id, { fromMs: startMs, toMs })
  return rows > impactRowsMax ? fromMs : startMs
}

type Sums = Map<string, { before: number; now: number }>

/** Counts what one record's requests got, then and now. */
function tally(limits: Sums, row: RequestRow, refused: ReadonlyMap<string, number>) {
  const of = (name: string) =>
    limits.get(name) ?? limits.set(name, { before: 0, now: 0 }).get(name) ?? { before: 0, now: 0 }
  if (row.outcome === 'deny' && row.denied_by !== '') of(row.denied_by).before += row.count
  let all = 0
  for (const [name, count] of refused) {
    of(name).now += count
    all += count
  }
  return row.outcome === 'deny' ? { toRefused: 0, toAdmitted: row.count - all } : { toRefused: all, toAdmitted: 0 }
}

const estimated = ({ before, now }: { readonly before: number; readonly now: number }): EstimatedLimit => ({
  ...{ before, atLeast: now, atMost: now },
})

/**
 * Decides the recorded requests of one subject again, by the limits of the edited policy and in their order. Rejects
 * with a QuestionBoundMet beyond a million records, or where it takes too long.
 */
export async function replayImpact(
  client: ClickHouseClient,
  edit: PolicyEdit,
  { subject, fromMs, toMs }: TimeSpan & { readonly subject: string },
  keyOf: ReplayParts['keyOf'],
): Promise<Impact> {
  const deadline = performance.now() + impactMsMax
  const periodBoundaries = createBoundaryCache()
  const startMs = await startOf(client, edit, { subject, fromMs, toMs }, periodBoundaries)
  const span = { fromMs: startMs, toMs }
  const pending = new PendingCorrections(await readCorrections(client, subject, span))
  const [replay, doubts] = [new Replay({ keyOf, periodBoundaries }), new Doubts()]
  const limits: Sums = new Map()
  const turned = { toRefused: 0, toAdmitted: 0 }
  let [rows, count] = [0, 0]
  for await (const row of readRequests(client, subject, span)) {
    rows += 1
    if (rows > impactRowsMax) throw new QuestionBoundMet('too-large', undefined)
    if (performance.now() > deadline) throw new QuestionBoundMet('timed-out', undefined)
    const corrected = pending.apply(row, replay)
    if (corrected > 0) doubts.add(doubtful.corrected, corrected)
    const request = requestOf(edit, subject, row, doubts)
    const { refused, first } = replay.decide(request)
    pending.keep(row.id, request, first)
    if (row.ts_ms < fromMs) continue
    count += row.count
    const { toRefused, toAdmitted } = tally(limits, row, refused)
    turned.toRefused += toRefused
    turned.toAdmitted += toAdmitted
  }
  const sums = new ImpactSums(edit)
  const all = [...limits.values()].reduce(
    (sum, { before, now }) => ({ before: sum.before + before, now: sum.now + now }),
    {
      before: 0,
      now: 0,
    },
  )
  sums.add(subject, {
    limits: new Map([...limits].map(([name, one]) => [name, estimated(one)])),
    total: estimated(all),
    count,
  })
  const said = doubts.sentences()
  const assumptions = [...assumedAlways, emptyAt(startMs), ...said]
  return { method: 'replay', isExact: said.length === 0, assumptions, ...sums.result(() => undefined), turned }
}
