import { uuidv7 } from '@weir/core/ids.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { Corrections } from './correct/corrections.ts'
import { policyStale, unauthorized, unverified } from './limits/denied-by-policy.ts'
import { createExceeded, type ExceededCounts } from './limits/exceeded.ts'
import { limitsOf, requestOf, reservedDecisionOf, scopeOf } from './limits/limit-request.ts'
import type { DecisionLog, IdempotencyRecords } from './ports.ts'
import { DecisionRecorder } from './record/decision-recorder.ts'
import { denialOf, unauthenticatedDenial } from './record/decision-records.ts'
import { Denials } from './record/denials.ts'
import { RecordOnce } from './record/record-once.ts'
import { contextOf, type DecisionRequest, type RecordedDecision, type UnauthenticatedRequest } from './types.ts'
import { type Attempt, attemptAgain, type Deciding } from './wait/attempt.ts'
import { DelayQueues } from './wait/delay-queues.ts'
import { limitToWaitFor, limitWaitedFor, waitForCapacity } from './wait/wait-for-capacity.ts'

export interface DecisionServiceParts extends Deciding {
  readonly log: DecisionLog
  readonly idempotencyRecords: IdempotencyRecords
  /** With `admit`, what cannot be recorded is answered as decided; if left out, it is denied. */
  readonly onJournalFull?: 'refuse' | 'admit' | undefined
  /** Shared with everything that corrects records. */
  readonly corrections?: Corrections | undefined
  /** Given by tests. */
  readonly delays?: DelayQueues | undefined
}

/**
 * The one way to a decision, for every entry point. A decision is answered only once its record is safe, or says by a
 * missing id that it has none.
 */
export class DecisionService {
  readonly denials: Denials
  /** The requests that wait for room. To be drained before the listeners close. */
  readonly delays: DelayQueues
  readonly #parts: DecisionServiceParts
  readonly #recorder: DecisionRecorder
  readonly #corrections: Corrections
  readonly #recordOnce: RecordOnce
  readonly #exceeded = createExceeded()

  constructor(parts: DecisionServiceParts) {
    const { log, clock, idempotencyRecords, delays = new DelayQueues() } = parts
    this.#parts = parts
    this.delays = delays
    this.denials = new Denials({ log, clock })
    this.#recorder = new DecisionRecorder(log, this.denials, parts.onJournalFull ?? 'refuse')
    this.#corrections = parts.corrections ?? new Corrections(log)
    this.#recordOnce = new RecordOnce(log, this.#recorder, idempotencyRecords)
  }

  /** Requests beyond a limit, by what was done with them. */
  get exceeded(): ExceededCounts {
    return this.#exceeded.counts
  }

  decide(ask: DecisionRequest): Promise<RecordedDecision> {
    return this.#decide(ask, undefined)
  }

  /** `waited` is how waiting ended, and final. One function, because every promise between would cost every request. */
  async #decide(ask: DecisionRequest, waited: Attempt | undefined): Promise<RecordedDecision> {
    const { policy, store, log, clock } = this.#parts
    const limits = limitsOf(ask)
    if (waited === undefined && this.delays.busyKeys > 0) {
      const ahead = this.#waitedFor(ask, limits)
      if (ahead !== undefined) return this.#decideLater(ask, limits, ahead, undefined)
    }
    const reserved = waited === undefined ? reservedDecisionOf(ask, limits, clock) : waited.reserved
    const request = waited === undefined ? requestOf(ask, limits, reserved, clock) : waited.request
    const fresh = waited === undefined ? (policy.isStale() ? policyStale : await store.decide(request)) : undefined
    const decision = fresh ?? waited?.decision ?? policyStale
    if (ask.peek) return { id: undefined, decision, limits }
    if (!decision.allowed) {
      const mayWait = waited === undefined && ask.client !== undefined
      const limit = mayWait ? limitToWaitFor(decision, limits, ask.waitMs) : undefined
      if (limit !== undefined) return this.#decideLater(ask, limits, limit, { ask, request, reserved, decision })
      this.#exceeded.note(decision, limits)
      const { lateRefund } = decision
      return lateRefund === undefined
        ? this.#recorder.deny(denialOf(ask, decision), limits, decision)
        : this.#denyUntilRefunded(ask, limits, decision, lateRefund)
    }
    if (decision.deniedBy !== '') this.#exceeded.note(decision, limits)
    const tsMs = reserved?.tsMs ?? clock.nowMs()
    const { idempotency } = request
    if (idempotency !== undefined) return this.#recordOnce.record({ tsMs, ask, limits, decision }, idempotency.id)
    const id = reserved?.reservation.id ?? uuidv7(tsMs)
    const landed = this.#recorder.append(id, tsMs, ask, decision)
    // Also where the log did not accept it: by then its gap page counts it.
    const isWritten = await log.written()
    if (landed !== undefined && isWritten) {
      if (ask.route.refundOn === undefined) return { id, decision, limits }
      return { id, decision, limits, charged: { id, about: contextOf(ask, tsMs), request, decision } }
    }
    return this.#refundUnrecorded(id, tsMs, { ask, request, reserved, decision }, landed)
  }

  /** Denies an admission that is not in the journal, or not yet, and refunds it; unless such requests are admitted. */
  async #refundUnrecorded(
    decisionId: string,
    tsMs: number,
    { ask, request, decision }: Attempt,
    landed: Promise<boolean> | undefined,
  ): Promise<RecordedDecision> {
    const { limits } = request
    if (this.#recorder.admitsUnrecorded) return this.#recorder.denyUnrecorded(limits, decision)
    const isBack = decision.charged === 'yes' && (await this.#parts.store.refund(request, decision))
    if (!isBack) return this.#recorder.denyUnrecorded(limits, decision)
    // A record that a stalled disk writes after all says that it was charged.
    void landed?.then((hasLanded) => {
      if (hasLanded) this.#correctCharge(decisionId, tsMs, ask, -ask.cost)
    })
    return this.#recorder.denyUnrecorded(limits, decision, 'no')
  }

  /** Denies a request that Redis may have charged. If that turns out, the store refunds it, and no usage changes. */
  async #denyUntilRefunded(
    ask: DecisionRequest,
    limits: readonly Limit[],
    decision: Decision,
    lateRefund: Promise<void>,
  ): Promise<RecordedDecision> {
    const tsMs = this.#parts.clock.nowMs()
    const verdict = await this.#recorder.deny(denialOf(ask, decision), limits, decision)
    const { id } = verdict
    if (id !== undefined) void lateRefund.then(() => this.#correctCharge(id, tsMs, ask, 0))
    return verdict
  }

  /** Records that what a decision charged is refunded. */
  #correctCharge(decisionId: string, tsMs: number, ask: DecisionRequest, adjustment: number): void {
    const { id: subject } = ask.subject
    const about = contextOf(ask, tsMs)
    this.#corrections.record({ decisionId, subject, about, adjustment, charged: 'no', limits: [] })
  }

  /**
   * The limit for whose room others wait. A repeat under an idempotency key was admitted before, so that it overtakes
   * none of them.
   */
  #waitedFor(ask: DecisionRequest, limits: readonly Limit[]): Limit | undefined {
    const { client, peek, idempotencyKey, cost, waitMs } = ask
    if (client === undefined || peek || idempotencyKey !== undefined) return undefined
    return limitWaitedFor(this.delays, { limits, scope: scopeOf(ask), cost, waitMs })
  }

  /** Waits for room in that limit. Denials meanwhile are not recorded; only the final one is. */
  async #decideLater(
    ask: DecisionRequest,
    limits: readonly Limit[],
    limit: Limit,
    first: Attempt | undefined,
  ): Promise<RecordedDecision> {
    const { client, cost, waitMs } = ask
    if (client === undefined) throw new TypeError('nobody can wait without a client')
    const patient = { limits, scope: scopeOf(ask), cost, waitMs, client }
    const again = () => attemptAgain(this.#parts, ask)
    const joined = () => this.#exceeded.noteWaiting()
    const { attempt, decision } = await waitForCapacity(this.delays, patient, { limit, first, again, joined })
    const { clock } = this.#parts
    const last = attempt ?? { ask, request: requestOf(ask, limits, undefined, clock), reserved: undefined }
    return this.#decide(last.ask, { ...last, decision })
  }

  /**
   * Records a request without a valid credential, or (`isUnverifiable`) one whose token cannot be verified now. Touches
   * no limit.
   */
  rejectUnauthenticated(ask: UnauthenticatedRequest): Promise<RecordedDecision> {
    const { retryAfterMs, isUnverifiable } = ask
    const recorded = this.#parts.policy.isStale() ? policyStale : isUnverifiable === true ? unverified : unauthorized
    const answered = retryAfterMs === 0 ? recorded : { ...recorded, retryAfterMs }
    return this.#recorder.deny(unauthenticatedDenial(ask, recorded), undefined, answered)
  }
}
