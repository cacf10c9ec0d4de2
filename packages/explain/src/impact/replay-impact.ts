import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { QuestionBoundMet } from '@weir/clickhouse/question-bounds.ts'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { algorithmFacts } from '@weir/core/limits/algorithm-facts.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { Period } from '@weir/core/prices/forecast.ts'
import { explainLimits } from '@weir/policy/match/resolve-limits.ts'
import { type Impact, ImpactSums } from './impact.ts'
import {
  countDecisions,
  countRecords,
  impactMsMax,
  impactRowsMax,
  readCorrections,
  readMostUsed,
  readRequests,
} from './impact-queries.ts'
import { PendingCorrections } from './pending-corrections.ts'
import type { PolicyEdit } from './policy-edit.ts'
import { Replay, type ReplayParts } from './replay.ts'
import { Doubts, doubtful, requestOf } from './replayed-request.ts'

/** Whose requests are decided again: those of some subjects, else those of the `top` with the most decisions. */
export interface ImpactQuestion extends Period {
  readonly subjects: readonly string[] | undefined
  readonly top: number
}

/** When the oldest charge that a limit may count at an instant was made. */
function countsFrom(limit: Limit, periodStartMs: number, ms: number): number {
  const { span, blockMs } = limit
  if (span.kind === 'period') return periodStartMs - blockMs
  return algorithmFacts[limit.algorithm].countsFromMs(limit, span.ms, ms) - blockMs
}

/** The state of one answer. */
interface Run {
  readonly client: ClickHouseClient
  readonly edit: PolicyEdit
  readonly span: Period
  readonly parts: ReplayParts
  readonly sums: ImpactSums
  readonly doubts: Doubts
  /** When it must be over, by the clock of `performance`. */
  readonly deadline: number
}

/** Where a replay begins: early enough for every count that runs at `fromMs`, if that is not too much to read. */
async function startOf({ client, edit, span, parts }: Run, id: string) {
  const { policy, subjectOf } = edit.after
  const { fromMs, toMs } = span
  const subject = subjectOf(id)
  const own = subject && explainLimits(policy, subject, undefined).map(({ limit }) => limit)
  const { timeZone, anchor } = subject ?? { timeZone: 'UTC', anchor: 1 }
  const starts = (own ?? [...policy.limits.values()]).map((limit) => {
    const { span: of } = limit
    const start = of.kind === 'period' ? parts.periodBoundaries(of.unit, timeZone, anchor, fromMs)[0] : 0
    return countsFrom(limit, start, fromMs)
  })
  const startMs = Math.min(fromMs, ...starts)
  const rows = await countRecords(client, id, { fromMs: startMs, toMs })
  if (rows <= impactRowsMax) return { startMs, rows }
  return { startMs: fromMs, rows: await countRecords(client, id, span) }
}

/** Decides a subject's requests again, in their order, and counts those of the span. */
async function replaySubject(run: Run, subject: string, startMs: number): Promise<void> {
  const { client, edit, parts, sums, doubts, deadline } = run
  const span = { fromMs: startMs, toMs: run.span.toMs }
  const pending = new PendingCorrections(await readCorrections(client, subject, span))
  const replay = new Replay(parts)
  let rows = 0
  for await (const row of readRequests(client, subject, span)) {
    rows += 1
    if (rows > impactRowsMax) throw new QuestionBoundMet('too-large', undefined)
    if (performance.now() > deadline) throw new QuestionBoundMet('timed-out', undefined)
    const corrected = pending.apply(row, replay)
    if (corrected > 0) doubts.add(doubtful.corrected, corrected)
    const request = requestOf(edit, subject, row, doubts)
    const { refused, first } = replay.decide(request)
    pending.keep(row.id, request, first)
    if (row.ts_ms >= run.span.fromMs) sums.add(subject, row, refused)
  }
}

const assumedAlways: readonly string[] = [
  'The same requests arrive at the same times: clients do not react to the edit.',
  'Routes, costs and keys are the recorded ones. Subjects have the plans of the edited policy.',
]

/**
 * Decides recorded requests again, by the limits of the edited policy. Of several subjects it takes the first, by their
 * decisions, that have a million records together. Rejects with a QuestionBoundMet where the first has more, or where
 * it takes too long.
 */
export async function replayImpact(
  client: ClickHouseClient,
  edit: PolicyEdit,
  { subjects: named, top, ...span }: ImpactQuestion,
  keyOf: ReplayParts['keyOf'],
): Promise<Impact> {
  const parts = { keyOf, periodBoundaries: createBoundaryCache() }
  const [sums, doubts] = [new ImpactSums(edit), new Doubts()]
  const run = { client, edit, span, parts, sums, doubts, deadline: performance.now() + impactMsMax }
  const allDecisions = await countDecisions(client, span)
  const wanted = named ?? (await readMostUsed(client, top, span))
  const starts: number[] = []
  let rowsLeft = impactRowsMax
  const assumptions = [...assumedAlways]
  for (const subject of wanted) {
    const { startMs, rows } = await startOf(run, subject)
    rowsLeft -= rows
    if (rowsLeft < 0 && starts.length === 0) throw new QuestionBoundMet('too-large', undefined)
    if (rowsLeft < 0) {
      const done = `only the first ${starts.length} are replayed`
      assumptions.push(`${wanted.length} subjects are affected, but ${done}: the maximum is ${impactRowsMax} records.`)
      break
    }
    await replaySubject(run, subject, startMs)
    starts.push(startMs)
  }
  const empty = new Date(starts.length > 0 ? Math.max(...starts) : span.fromMs).toISOString()
  const earlier = starts.length > 1 ? ' or earlier' : ''
  assumptions.push(`Counts are empty at ${empty}${earlier}, and the edited limits apply from then on.`)
  const said = doubts.sentences()
  assumptions.push(...said)
  return { exact: said.length === 0, assumptions, subjects: starts.length, ...sums.result(allDecisions) }
}
