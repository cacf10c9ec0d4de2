import {
  type CountedLimit,
  type DecisionInput,
  encodeAfterCount,
  encodeCoalescedOpen,
} from '@weir/contracts/decision.v1.ts'
import { thresholdUnits } from '@weir/core/alerts/reached-thresholds.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { thresholdsOf } from '@weir/policy/alert-thresholds.ts'
import type { CoalescedRecord, DecisionLog } from '../ports.ts'
import type { DecisionRequest } from '../types.ts'
import type { AddressForm } from './counted-by.ts'
import { admissionOf, kindOf } from './decision-records.ts'

/** The first of a second have records of their own: so few cost less than the frames of a sum do. */
const ownRecords = 2
/** Kinds of a second: about 3 MB. What is beyond has records of its own. */
const kindsMax = 10_000
/** Shared records of a second: with as many of denials, and those of the second before, they fit into the journal. */
const openMax = 1_000
/** The shortest period is a minute, and clocks differ by less than half of one. */
const periodMsMin = 60_000

/** A record that admissions share, with the fullest state that each limit has had since it was opened. */
interface Shared {
  readonly id: string
  readonly record: CoalescedRecord
  /** Of the record; the times of its states are after it. */
  readonly tsMs: number
  readonly states: CountedLimit[]
  readonly atMs: number[]
}

/** Admissions of a second that are alike. */
interface Kind {
  seen: number
  /** Of each limit, the least use that reaches another threshold, by its state in `since`. */
  alertsAt: readonly number[]
  /** The first one, or the first of a period that has begun. */
  since: DecisionInput
  shared: Shared | undefined
}

/** Where an admission is counted. */
export interface SharedRecord {
  readonly id: string
  /** Of the record: that of its first admission. */
  readonly tsMs: number
  /** Resolves as `DecisionLog.finallyWritten`. */
  readonly outcome: Promise<boolean>
}

/**
 * Whether the policy has it coalesced, and nothing is known of it later that a record of its own has to say. Sums of
 * units read a record as one request.
 */
export const isCoalesced = ({ subject, route, units, meter, trace, settleMs }: DecisionRequest): boolean =>
  (route.coalesces ?? subject.plan.coalesces) === true &&
  units === undefined &&
  meter === undefined &&
  trace === undefined &&
  settleMs === undefined &&
  route.settleMs === undefined &&
  route.refundOn === undefined

/**
 * The records that admissions of one second share which any question about usage counts alike, where `coalesce` of a
 * plan or route says so. A record has the time of its first admission, and its limits are as they were when most was
 * used. What reaches a threshold has a record of its own, so that alerts are as early, and as many, as without.
 */
export class CoalescedAdmissions {
  readonly #log: DecisionLog
  readonly #addressForm: AddressForm
  /** Of limits, which are the same list for all requests of a plan to a route. */
  readonly #names = new WeakMap<readonly Limit[], string>()
  readonly #kinds = new Map<string, Kind>()
  #opened = 0
  #second = 0

  constructor(log: DecisionLog, addressForm: AddressForm) {
    this.#log = log
    this.#addressForm = addressForm
  }

  /** Counts an admission; undefined where it is to have a record of its own. */
  add(tsMs: number, ask: DecisionRequest, asked: readonly Limit[], decision: Decision): SharedRecord | undefined {
    const second = Math.floor(tsMs / 1_000)
    if (second !== this.#second) {
      this.#second = second
      this.#opened = 0
      this.#kinds.clear()
    }
    // Made without Redis: some limits have no state.
    if (decision.limits.length !== asked.length) return undefined
    const admission = admissionOf('', tsMs, ask, asked, decision, this.#addressForm)
    const name = `${admission.mode}\n${admission.shadowedBy}\n${this.#namesOf(asked)}\n${kindOf(admission)}`
    const { limits } = admission
    const kind = this.#kinds.get(name) ?? { seen: 0, alertsAt: [], since: admission, shared: undefined }
    kind.seen += 1
    if (kind.seen === 1 && this.#kinds.size < kindsMax) this.#kinds.set(name, kind)
    const isOver = isOtherPeriod(kind.since, asked, admission)
    if (isOver) kind.shared = undefined
    if (isOver || kind.seen === 1 || limits.some(({ used }, at) => used >= (kind.alertsAt[at] ?? 0))) {
      kind.alertsAt = limits.map((state, at) => nextAlert(state, asked[at], ask))
      kind.since = admission
      return undefined
    }
    if (kind.seen <= ownRecords) return undefined
    kind.shared ??= this.#open(admission, ask.subject.id)
    const { shared } = kind
    if (shared === undefined) return undefined
    keepFullest(shared, limits, tsMs)
    if (!shared.record.add()) {
      kind.shared = undefined
      return undefined
    }
    return { id: shared.id, tsMs: shared.tsMs, outcome: shared.record.finallyWritten() }
  }

  #namesOf(asked: readonly Limit[]): string {
    const known = this.#names.get(asked)
    if (known !== undefined) return known
    const names = asked.map(({ name }) => name).join()
    this.#names.set(asked, names)
    return names
  }

  #open(admission: DecisionInput, key: string): Shared | undefined {
    if (this.#opened >= openMax) return undefined
    const { tsMs, limits } = admission
    const id = uuidv7(tsMs)
    const states = [...limits]
    const atMs = states.map(() => tsMs)
    const latest = () => encodeAfterCount({ ...admission, limits: statesFrom(tsMs, states, atMs) })
    const { beforeCount, afterCount } = encodeCoalescedOpen({ ...admission, id })
    const record = this.#log.openCoalesced(key, beforeCount, afterCount, latest)
    if (record === undefined) return undefined
    this.#opened += 1
    return { id, record, tsMs, states, atMs }
  }
}

/** `resetMs` counts from the record's time. */
const statesFrom = (tsMs: number, states: readonly CountedLimit[], atMs: readonly number[]): CountedLimit[] =>
  states.map((state, at) => ({ ...state, resetMs: state.resetMs + (atMs[at] ?? tsMs) - tsMs }))

/** Whether another period of a limit has begun: what was used in either says something that the other does not. */
function isOtherPeriod(since: DecisionInput, asked: readonly Limit[], { limits, tsMs }: DecisionInput): boolean {
  for (let at = 0; at < limits.length; at += 1) {
    if (asked[at]?.span.kind !== 'period') continue
    const endedMs = since.tsMs + (since.limits[at]?.resetMs ?? 0)
    if (Math.abs(tsMs + (limits[at]?.resetMs ?? 0) - endedMs) > periodMsMin / 2) return true
  }
  return false
}

function keepFullest({ states, atMs }: Shared, limits: readonly CountedLimit[], tsMs: number): void {
  for (let at = 0; at < limits.length; at += 1) {
    const state = limits[at]
    if (state === undefined || state.used < (states[at]?.used ?? 0)) continue
    states[at] = state
    atMs[at] = tsMs
  }
}

/** The least use above this that reaches a threshold. */
function nextAlert({ used, size, at }: CountedLimit, limit: Limit | undefined, { view, subject }: DecisionRequest) {
  const thresholds = limit === undefined ? [] : thresholdsOf(limit, view.policy, at ?? subject.id)
  const units = thresholds.map((one) => ('units' in one ? one.units : thresholdUnits(size, one.percent)))
  return Math.min(...units.filter((one) => one > used))
}
