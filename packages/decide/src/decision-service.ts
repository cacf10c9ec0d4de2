import { uuidv7 } from '@weir/core/ids.ts'
import { countsInFlight } from '@weir/core/limits/algorithm-facts.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { SlotStore } from '@weir/core/limits/limit-store.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import { Corrections } from './correct/corrections.ts'
import { DecisionMetrics } from './decision-metrics.ts'
import { Leasing } from './lease/leasing.ts'
import { byHand, policyStale, unauthorized, unverified } from './limits/denied-by-policy.ts'
import { countExceeded, type ExceededCounts } from './limits/exceeded.ts'
import { limitsOf, requestOf, reservedDecisionOf, withMoney } from './limits/limit-request.ts'
import type { DecisionLog, IdempotencyRecords } from './ports.ts'
import type { AddressForm } from './record/counted-by.ts'
import { DecisionRecorder } from './record/decision-recorder.ts'
import { unusedOf } from './record/decision-records.ts'
import { recordOnce } from './record/record-once.ts'
import { SlotKeeper } from './slots/slot-keeper.ts'
import { contextOf, type DecisionRequest, type RecordedDecision, type UnauthenticatedRequest } from './types.ts'
import { DelayQueues } from './wait/delay-queues.ts'
import {
  type Attempt,
  type Deciding,
  expectCapacity,
  limitToWaitFor,
  limitWaitedFor,
  waitForCapacity,
} from './wait/wait-for-capacity.ts'

/** What a decision service is made of. */
export interface DecisionServiceParts extends Deciding {
  readonly log: DecisionLog
  readonly idempotencyRecords: IdempotencyRecords
  /** With `admit`, what cannot be recorded is answered as decided; if left out, it is denied. */
  readonly onJournalFull?: 'refuse' | 'admit' | undefined
  /** How addresses are recorded; `full` if left out. */
  readonly addressForm?: AddressForm | undefined
  /** Without it slots end by themselves. */
  readonly slots?: SlotStore | undefined
  /** Shared with everything that corrects records. */
  readonly corrections?: Corrections | undefined
  readonly crash?: CrashPoint | undefined
}

const noSlots: SlotStore = { renew: async () => 0, release: async () => 0 }

/**
 * The one way to a decision, for every entry point. A decision is answered only once its record is safe, or says by a
 * missing id that it has none.
 */
export class DecisionService {
  readonly recorder: DecisionRecorder
  /** The requests that wait for capacity. To be drained before the listeners close. */
  readonly delays = new DelayQueues()
  readonly metrics = new DecisionMetrics()
  /** Requests beyond a limit, by what was done with them. */
  readonly exceeded: ExceededCounts = { deny: 0, drop: 0, degrade: 0, block: 0, delay: 0, challenge: 0, charge: 0 }
  /** What requests in flight through this process hold. */
  readonly slots: SlotKeeper
  /** What applications take ahead. */
  readonly leasing: Leasing
  readonly #parts: DecisionServiceParts
  readonly #corrections: Corrections
  readonly #recordOnce: ReturnType<typeof recordOnce>

  constructor(parts: DecisionServiceParts) {
    const { log, clock, idempotencyRecords } = parts
    this.#parts = parts
    this.slots = new SlotKeeper(parts.slots ?? noSlots, ({ request }) => expectCapacity(this.delays, request))
    this.recorder = new DecisionRecorder(log, clock, parts.onJournalFull ?? 'refuse', {
      addressForm: parts.addressForm,
    })
    this.#corrections = parts.corrections ?? new Corrections(log)
    this.leasing = new Leasing(parts, this.recorder, this.#corrections)
    this.#recordOnce = recordOnce(log, this.recorder, idempotencyRecords)
  }

  /** One function for the usual way, because every promise between would cost every request. */
  async decide(asked: DecisionRequest): Promise<RecordedDecision> {
    const { policy, store, log, clock } = this.#parts
    const { rates } = asked.view
    const priced = rates === undefined ? asked : withMoney(asked, rates, clock.nowMs())
    const { client, trace } = priced
    const said = byHand(priced, clock)
    if (typeof said === 'object') return this.#blockedByHand(priced, said)
    let ask = said === 'exempt' ? { ...priced, ip: '' } : priced
    let limits = limitsOf(ask)
    let reserved = reservedDecisionOf(ask, limits, clock)
    let request = requestOf(ask, limits, reserved, clock)
    trace?.asked()
    const busyLimit = this.delays.busyKeys > 0 ? limitWaitedFor(this.delays, ask, request) : undefined
    const first = busyLimit === undefined ? (policy.isStale() ? policyStale : await store.decide(request)) : undefined
    // Without a first decision the request waits, and the one that it comes to replaces this.
    let decision = first ?? policyStale
    trace?.decided()
    const { above } = request.scope
    if (ask.peek) return this.#peeked(ask, { id: undefined, decision, limits, above })
    const limit = first === undefined ? busyLimit : limitToWaitFor(first, limits, ask.waitMs)
    let waitedMs = 0
    if (limit !== undefined && client !== undefined) {
      const fromMs = performance.now()
      const undecided = { ask, request, reserved, decision: first }
      // Denials meanwhile are not recorded; only the final one is.
      const last = await waitForCapacity(this.delays, this.#parts, undecided, limit, client, this.exceeded)
      ;({ ask, request, reserved, decision } = last)
      limits = request.limits
      waitedMs = performance.now() - fromMs
      trace?.decided()
    }
    const counted = (recorded: RecordedDecision) => {
      this.metrics.count(ask, limits, decision, recorded.decision, waitedMs)
      trace?.recorded(ask, recorded)
      const taken = request.slots?.taken
      const whole = above === undefined ? recorded : { ...recorded, above }
      if (taken === undefined || taken.length === 0 || decision.charged !== 'yes') return whole
      return { ...whole, slots: taken }
    }
    if (decision.deniedBy !== '') countExceeded(this.exceeded, decision, limits)
    if (!decision.allowed) {
      const { lateRefund } = decision
      return counted(
        await (lateRefund === undefined
          ? this.recorder.denyRequest(ask, limits, decision)
          : this.#denyAndCorrectLater(ask, limits, decision, lateRefund)),
      )
    }
    const tsMs = reserved?.tsMs ?? clock.nowMs()
    const { idempotency } = request
    if (decision.isOtherQuestion === true) return this.#peeked(ask, { id: undefined, decision, limits })
    if (idempotency !== undefined) {
      return counted(await this.#recordOnce({ tsMs, ask, limits, decision }, idempotency.id))
    }
    // What is still held is given back by its own record's name.
    const shared = request.slots === undefined ? this.recorder.share(tsMs, ask, limits, decision) : undefined
    const id = shared?.id ?? reserved?.reservation.id ?? uuidv7(tsMs)
    const outcome = shared?.outcome ?? this.recorder.append(id, tsMs, ask, limits, decision)
    // Also where the log did not accept it: by then its gap file counts it.
    const isWritten = await log.writtenInTime()
    if (outcome !== undefined && isWritten) {
      if (ask.route.refundOn === undefined && ask.meter === undefined) return counted({ id, decision, limits })
      return counted({ id, decision, limits, charged: { id, context: contextOf(ask, tsMs), request, decision } })
    }
    // Of many under one id each may be corrected.
    const corrected = shared === undefined ? { id, tsMs } : { id, tsMs: shared.tsMs, correctionId: uuidv7(tsMs) }
    return counted(await this.#answerUnrecorded(corrected, { ask, request, decision }, outcome))
  }

  /** Gives back what was charged before for a request and was not used, as far as it is still charged. */
  async giveBack(ask: DecisionRequest): Promise<void> {
    const { slots = noSlots, clock } = this.#parts
    // The request was made, whatever it used.
    const limits = limitsOf(ask).filter((limit) => limit.unit !== 'requests' || countsInFlight(limit))
    const request = requestOf(ask, limits, undefined, clock)
    const atUs = limits.length === 0 ? 0 : await slots.release({ request, atUs: 0 })
    if (ask.cost === 0 || (limits.length > 0 && (atUs === 0 || limits.every(countsInFlight)))) return
    // No decision is known: the correction names itself.
    const tsMs = clock.nowMs()
    const id = uuidv7(tsMs)
    this.#correctCharge(id, tsMs, ask, -ask.cost, id)
  }

  /** Counts slots that were refused without being asked for, and will be given back all the same. */
  async countRefused(ask: DecisionRequest): Promise<void> {
    const { slots = noSlots, clock } = this.#parts
    await slots.renew({ request: requestOf(ask, limitsOf(ask), undefined, clock), atUs: 0 })
  }

  /** A person has blocked the caller: no limit is asked, and a peek is answered as any. */
  async #blockedByHand(ask: DecisionRequest, decision: Decision): Promise<RecordedDecision> {
    const limits = limitsOf(ask)
    if (ask.peek) return this.#peeked(ask, { id: undefined, decision, limits })
    const recorded = await this.recorder.denyRequest(ask, limits, decision)
    this.metrics.count(ask, limits, decision, recorded.decision, 0)
    ask.trace?.recorded(ask, recorded)
    return recorded
  }

  /** A peek counts nowhere. */
  #peeked(ask: DecisionRequest, peeked: RecordedDecision): RecordedDecision {
    ask.trace?.recorded(ask, peeked)
    return peeked
  }

  /** Answers an admission that has no record: refunded and denied, or admitted as `onJournalFull` says. */
  async #answerUnrecorded(
    { id, tsMs, correctionId }: { readonly id: string; readonly tsMs: number; readonly correctionId?: string },
    { ask, request, decision }: Omit<Attempt, 'reserved'>,
    outcome: Promise<boolean> | undefined,
  ): Promise<RecordedDecision> {
    const { limits } = request
    if (this.recorder.admitsUnrecorded) {
      // Without a record nothing settles what it holds.
      if (ask.meter !== undefined && decision.charged === 'yes') void this.#parts.store.refund(request, decision)
      return this.recorder.answerUnrecorded(limits, decision)
    }
    const isBack = decision.charged === 'yes' && (await this.#parts.store.refund(request, decision))
    if (!isBack) return this.recorder.answerUnrecorded(limits, decision)
    // A record that a stalled disk writes after all says that it was charged.
    void outcome?.then((isWritten) => {
      if (isWritten) this.#correctCharge(id, tsMs, ask, -ask.cost, correctionId)
    })
    return this.recorder.answerUnrecorded(limits, decision, 'no')
  }

  /** Denies a request that Redis may have charged. If that turns out, the store refunds it, and no usage changes. */
  async #denyAndCorrectLater(
    ask: DecisionRequest,
    limits: readonly Limit[],
    decision: Decision,
    lateRefund: Promise<void>,
  ): Promise<RecordedDecision> {
    const tsMs = this.#parts.clock.nowMs()
    const verdict = await this.recorder.denyRequest(ask, limits, decision)
    const { id } = verdict
    // Its units were only asked for: there are none to take back.
    const without = { ...ask, units: undefined }
    if (id !== undefined) void lateRefund.then(() => this.#correctCharge(id, tsMs, without, 0))
    return verdict
  }

  /** Records that what a decision charged is refunded. */
  #correctCharge(decisionId: string, tsMs: number, ask: DecisionRequest, adjustment: number, id?: string): void {
    const { id: subject } = ask.subject
    const context = contextOf(ask, tsMs)
    this.#corrections.record({
      decisionId,
      subject,
      context,
      adjustment,
      charged: 'no',
      limits: [],
      id,
      ...unusedOf(ask),
    })
  }

  /**
   * Records a request without a valid credential, or (`isUnverifiable`) one whose token cannot be verified now. Touches
   * no limit.
   */
  async rejectUnauthenticated(ask: UnauthenticatedRequest): Promise<RecordedDecision> {
    const { retryAfterMs, isUnverifiable } = ask
    const recorded = this.#parts.policy.isStale() ? policyStale : isUnverifiable === true ? unverified : unauthorized
    const answered = retryAfterMs === 0 ? recorded : { ...recorded, retryAfterMs }
    const rejected = await this.recorder.denyUnauthenticated(ask, recorded, answered)
    this.metrics.countUnauthenticated(ask, rejected.decision)
    ask.trace?.recorded(ask, rejected)
    return rejected
  }
}
