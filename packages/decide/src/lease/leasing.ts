import { uuidv7 } from '@weir/core/ids.ts'
import { algorithmFacts } from '@weir/core/limits/algorithm-facts.ts'
import { type Decision, denied, type LimitState } from '@weir/core/limits/decision.ts'
import { type LeaseDecline, leaseCountMax, leaseDeclines } from '@weir/core/limits/lease.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { costMax, type Units } from '@weir/core/limits/limit-store.ts'
import { ancestorsOf } from '@weir/policy/ancestors.ts'
import { clientLeaseMsOf, whyNotLeased } from '@weir/policy/client-lease.ts'
import { type CrashPoint, noCrash } from '@weir/runtime/crash-point.ts'
import type { LeaseContext } from '../correct/correction-record.ts'
import type { Corrections } from '../correct/corrections.ts'
import { byHand, policyStale } from '../limits/denied-by-policy.ts'
import { limitsOf, type ReservedDecision, requestOf } from '../limits/limit-request.ts'
import type { DecisionLog } from '../ports.ts'
import type { DecisionRecorder } from '../record/decision-recorder.ts'
import { contextOf, type DecisionRequest, type RecordedDecision } from '../types.ts'
import type { Deciding } from '../wait/wait-for-capacity.ts'

/** At most this part of what is left, so that the last units are decided one by one, in the order of the requests. */
const share = 8
/** Fewer decisions cost as much as checks of their own. */
const leastCount = 8
/** A shorter lease is over on its way. */
const leastMs = 50
/** Two applications took a part of the same at once: one of them asks again after this time. */
const contendedMs = 50
/** How long after its end a lease can still be settled. */
const settledMs = 60_000

/** Units that an application may decide with by itself, in whole decisions. */
export interface Lease {
  readonly kind: 'leased'
  readonly id: string
  /** Decisions. */
  readonly count: number
  /** Units of each. */
  readonly cost: number
  /** From the answer on. */
  readonly endsMs: number
  /** Of a lease that no window cuts short. */
  readonly lifeMs: number
  /** As it left the limits. */
  readonly recorded: RecordedDecision
}

/** What a wish for units is answered. */
export type LeaseAnswer =
  | Lease
  | {
      readonly kind: 'declined'
      readonly why: LeaseDecline
      /** A window is nearly over: when the next begins. */
      readonly retryMs?: number
      readonly recorded?: RecordedDecision
    }

const declined = (why: LeaseDecline) => ({ kind: 'declined', why }) as const
const noUnits: Units = new Map()

/** What units are given with. */
interface LeasingParts extends Pick<Deciding, 'store' | 'policy' | 'clock'> {
  readonly log: DecisionLog
  readonly crash?: CrashPoint | undefined
}

/**
 * Gives applications units ahead, to decide with by themselves. They are charged, on every limit of the request, and
 * recorded as so many decisions before they are given; what was not used is settled as any decision is. docs/leases.md
 * says what is promised.
 */
export class Leasing {
  /** Since the process started: leases, decisions in them, and what was not given, by why. */
  readonly counters = {
    leases: 0,
    decisions: 0,
    refusals: 0,
    declined: Object.fromEntries(leaseDeclines.map((why) => [why, 0])) as Record<LeaseDecline, number>,
  }
  readonly #parts: LeasingParts
  readonly #recorder: DecisionRecorder
  readonly #corrections: Corrections

  constructor(parts: LeasingParts, recorder: DecisionRecorder, corrections: Corrections) {
    this.#parts = parts
    this.#recorder = recorder
    this.#corrections = corrections
  }

  /** Gives up to `want` decisions on equal requests, all limits or none. */
  async lease(ask: DecisionRequest, want: number): Promise<LeaseAnswer> {
    const answer = await this.#lease(ask, want)
    if (answer.kind === 'declined') this.counters.declined[answer.why] += 1
    else {
      this.counters.leases += 1
      this.counters.decisions += answer.count
    }
    return answer
  }

  async #lease(asked: DecisionRequest, want: number): Promise<LeaseAnswer> {
    const { store, policy, clock, crash = noCrash } = this.#parts
    const mostMs = clientLeaseMsOf(asked.subject, asked.route)
    if (mostMs === 0) return declined('not-allowed')
    if (policy.isStale()) return this.#refused(asked, [], policyStale, 'unavailable')
    const said = byHand(asked, clock)
    if (typeof said === 'object') return this.#refused(asked, [], said)
    const ask = said === 'exempt' ? { ...asked, ip: '' } : asked
    const limits = limitsOf(ask)
    const { cost, view, units } = ask
    // Without a limit there is nothing to take ahead.
    const isUnsuited = limits.length === 0 || cost === 0 || units !== undefined || view.rates?.pricesEvery === true
    if (isUnsuited || limits.some((limit) => whyNotLeased(limit) !== undefined)) return declined('unsuited')
    const peeked = await store.decide(requestOf({ ...ask, peek: true }, limits, undefined, clock))
    crash('lease.peeked')
    if (!peeked.allowed) return this.#refused(ask, limits, peeked)
    if (peeked.atUs === 0) return declined('unavailable')
    const left = Math.min(...peeked.limits.map(({ remaining }) => remaining))
    const count = Math.min(want, leaseCountMax, Math.floor(left / share / cost), Math.floor(costMax / cost))
    if (count < leastCount || peeked.exceededMask !== 0) return declined('too-little')
    const tooShort = limits.map((limit) => windowLeftMs(limit, peeked.atUs)).find((leftMs) => leftMs < leastMs)
    if (tooShort !== undefined) return { ...declined('too-little'), retryMs: Math.max(1, Math.ceil(tooShort)) }
    return await this.#take(ask, limits, count, mostMs)
  }

  #refused(
    ask: DecisionRequest,
    limits: readonly Limit[],
    decision: Decision,
    why: LeaseDecline = decision.reason === 'unavailable' ? 'unavailable' : 'refused',
  ): LeaseAnswer {
    return { ...declined(why), recorded: { id: undefined, decision, limits, above: aboveOf(ask) } }
  }

  async #take(ask: DecisionRequest, limits: readonly Limit[], count: number, mostMs: number): Promise<LeaseAnswer> {
    const { store, clock, log, crash = noCrash } = this.#parts
    const tsMs = clock.nowMs()
    const id = uuidv7(tsMs)
    const cost = count * ask.cost
    const context: LeaseContext = { ...contextOf(ask, tsMs), each: ask.cost }
    const reservation = { id, ttlMs: mostMs + settledMs, context: JSON.stringify(context), settleMax: cost }
    const reserved: ReservedDecision = { tsMs, reservation }
    // As what is held it is given back by its marker: once, and until Redis answers.
    const request = requestOf({ ...ask, cost, units: noUnits }, limits, reserved, clock)
    const decision = await store.decide(request)
    crash('lease.charged')
    if (!decision.allowed) return declined(decision.reason === 'unavailable' ? 'unavailable' : 'too-little')
    const endsMs = Math.min(mostMs, ...limits.map((limit, at) => lifeOf(limit, decision.limits[at])))
    // Others were quicker, or what a limit in shadow has not would be admitted uncounted.
    const isShare = decision.limits.every(({ remaining }) => remaining >= (share - 1) * cost)
    const isWhole = decision.charged === 'yes' && decision.atUs !== 0 && decision.exceededMask === 0
    if (!isWhole || !isShare || endsMs < leastMs) {
      if (decision.charged === 'yes') void store.refund(request, decision)
      else void decision.giveBack?.()
      if (decision.atUs === 0) return declined('unavailable')
      const retryMs = isShare ? Math.max(1, Math.ceil(endsMs)) : contendedMs
      return isWhole ? { ...declined('too-little'), retryMs } : declined('too-little')
    }
    const outcome = this.#recorder.append(id, tsMs, ask, limits, decision, count)
    const isWritten = await log.writtenInTime()
    crash('lease.written')
    if (outcome !== undefined && isWritten) {
      const recorded = { id, decision, limits, above: request.scope.above }
      return { kind: 'leased', id, count, cost: ask.cost, endsMs, lifeMs: mostMs, recorded }
    }
    const isBack = await store.refund(request, decision)
    void outcome?.then((isThere) => {
      if (!isThere || !isBack) return
      const { each: _, ...about } = context
      const taken = { adjustment: -cost, countAdjustment: -count, charged: 'no', limits: [] } as const
      this.#corrections.record({ decisionId: id, subject: ask.subject.id, context: about, ...taken })
    })
    return declined('unavailable')
  }

  /**
   * Records refusals that an application gave by itself, in a record of this second. Resolves to false where they are
   * not recorded; to undefined where no limit of that name would refuse such a request.
   */
  async refuse(ask: DecisionRequest, deniedBy: string, count: number): Promise<boolean | undefined> {
    const { store, clock, log } = this.#parts
    const limits = limitsOf(ask)
    const at = limits.findIndex(({ name, mode }) => name === deniedBy && mode === 'enforce')
    if (at === -1) return undefined
    const peeked = await store.decide(requestOf({ ...ask, peek: true }, limits, undefined, clock))
    const { limits: states, retryAfterMs } = peeked
    const decision = denied('limit', { deniedBy, exceededMask: 2 ** at, limits: states, retryAfterMs, isCached: true })
    const isTaken = this.#recorder.appendRefusals(ask, limits, decision, count)
    const isRecorded = (await log.writtenInTime()) && isTaken
    if (isRecorded) this.counters.refusals += count
    return isRecorded
  }
}

const aboveOf = ({ subject }: DecisionRequest) => subject.parent && ancestorsOf(subject)

/** How much of a window is left by Redis's clock; of a calendar period that is known only once it is charged. */
const windowLeftMs = ({ algorithm, span }: Limit, atUs: number): number =>
  span.kind === 'window' && algorithmFacts[algorithm].followsClock
    ? span.ms - (Math.floor(atUs / 1_000) % span.ms)
    : Number.POSITIVE_INFINITY

/** For how long units count where they were charged: in a window or period, or of a window that slides in its cell. */
function lifeOf({ algorithm, span }: Limit, state: LimitState | undefined): number {
  const { resetMs = 0 } = state ?? {}
  const { resetsAtOnce, followsClock } = algorithmFacts[algorithm]
  if (resetsAtOnce) return resetMs
  if (!followsClock) return Number.POSITIVE_INFINITY
  return span.kind === 'window' ? resetMs - span.ms : 0
}
