import { count, wait } from '@weir/core/format.ts'
import { textTable } from '../text-table.ts'
import type { LimitReport } from './limit-watch.ts'
import type { Profile } from './profile.ts'
import type { DecisionCount, Latencies, StepReport } from './tally.ts'

/** One figure of two loads. */
export interface ComparedFigure {
  readonly figure: string
  readonly before: number | string | null
  readonly now: number | string | null
  /** 0.12 is +12%; null from nothing, and of words. */
  readonly change: number | null
}

/** The outcome of a load: what `--json` prints. Keys are only added. */
export interface LoadReport {
  readonly via: Profile['via']
  readonly target: string
  readonly from: string
  readonly to: string
  /** In the order in which they ran. */
  readonly steps: readonly StepReport[]
  readonly total: StepReport
  /** Answers by status, and requests without one by error. */
  readonly codes: Readonly<Record<string, number>>
  readonly decisions: readonly DecisionCount[]
  /** Null without a policy. */
  readonly limits: readonly LimitReport[] | null
  readonly compared?: readonly ComparedFigure[]
}

const figure = (value: number) => value.toLocaleString('en-US', { maximumFractionDigits: value < 10 ? 2 : 1 })

const latencyTexts = (latencies: Latencies | null) => {
  const { p50, p90, p99, p99_9, max } = latencies ?? {}
  return [p50, p90, p99, p99_9, max].map((ms) => (ms === undefined ? '' : figure(ms)))
}

function stepName({ rate, users, think_ms }: StepReport): string {
  if (rate !== null) return `${count(rate)}/s`
  if (users === null) return 'all'
  return `${count(users)} users${think_ms === 0 ? '' : `, think ${wait(think_ms ?? 0)}`}`
}

function stepRows(step: StepReport): string[][] {
  const { seconds, sent, answered_per_second, failed, unsent, latency_ms, service_ms } = step
  const counts = [`${figure(seconds)} s`, count(sent), figure(answered_per_second), count(failed), count(unsent)]
  return [
    [stepName(step), ...counts, 'latency', ...latencyTexts(latency_ms)],
    ['', '', '', '', '', '', 'service', ...latencyTexts(service_ms)],
  ]
}

function stepTable({ steps, total }: LoadReport): string {
  const head = ['STEP', 'TIME', 'SENT', 'ANSWERS/S', 'FAILED', 'UNSENT', 'MS', 'P50', 'P90', 'P99', 'P99.9', 'MAX']
  return textTable([head, ...[...steps, ...(steps.length > 1 ? [total] : [])].flatMap(stepRows)])
}

const decisionTable = (decisions: readonly DecisionCount[]) =>
  textTable([
    ['DECISION', 'REASON', 'LIMIT', 'COUNT'],
    ...decisions.map(({ allowed, reason, denied_by, count: number }) => [
      allowed ? 'allow' : 'deny',
      reason,
      denied_by,
      count(number),
    ]),
  ])

function verdictText({ verdict, why, within_ms, broken, capacity }: LimitReport): string {
  if (verdict === 'held') return `held (times known within ${within_ms} ms)`
  if (broken === null) return `not known: ${why}`
  const { at, scope, used, cost, excess_requests, excess_units } = broken
  const proof = `${count(used)} of ${count(capacity)} were used by ${at} (${scope}), and ${count(cost)} more admitted`
  return `BROKEN: ${proof}; ${count(excess_units)} units of ${count(excess_requests)} requests too many in all`
}

function limitTable(limits: readonly LimitReport[]): string {
  const head = ['LIMIT', 'ALGORITHM', 'ADMITS', 'COUNTS', 'ADMITTED', 'REFUSED', 'VERDICT']
  const rows = limits.map((limit) => {
    const { name, algorithm, size, window_ms, period, counts, admitted_units, refused } = limit
    const per = window_ms === null ? `a ${period}` : `in ${wait(window_ms)}`
    const counted = [count(counts), count(admitted_units), count(refused)]
    return [name, algorithm, `${count(size)} ${per}`, ...counted, verdictText(limit)]
  })
  return textTable([head, ...rows])
}

const changeText = (change: number | null) =>
  change === null ? '' : `${change > 0 ? '+' : ''}${(change * 100).toFixed(1)}%`

const compareTable = (compared: readonly ComparedFigure[]) =>
  textTable([
    ['FIGURE', 'BEFORE', 'NOW', 'CHANGE'],
    ...compared.map(({ figure: name, before, now, change }) => {
      const shown = [before, now].map((value) => (typeof value === 'number' ? figure(value) : (value ?? '')))
      return [name, ...shown, changeText(change)]
    }),
  ])

/** Formats the outcome of a load for people. */
export function reportText(report: LoadReport): string {
  const { via, target, codes, decisions, limits, compared, steps } = report
  const hasUsers = steps.some(({ users }) => users !== null)
  const parts = [
    `${via} at ${target}. Latency counts from when a request was due, service from when it was written.`,
    ...(hasUsers
      ? ['Users wait for their answers: while the server stalls they ask for less, and latency leaves that out.']
      : []),
    stepTable(report),
    textTable([['CODE', 'COUNT'], ...Object.entries(codes).map(([code, number]) => [code, count(number)])]),
    ...(decisions.length === 0 ? [] : [decisionTable(decisions)]),
    limits === null
      ? 'Whether limits held is not known without the policy: name it with --policy FILE.'
      : limitTable(limits),
    ...(compared === undefined ? [] : [compareTable(compared)]),
  ]
  return parts.join('\n\n')
}
