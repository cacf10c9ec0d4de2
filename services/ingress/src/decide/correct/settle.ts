import { setTimeout as delay } from 'node:timers/promises'
import type { Decision, LimitState } from '@weir/core/limits/decision.ts'
import type { LimitRequest, LimitStore } from '@weir/core/limits/limit-store.ts'
import type { Settled, Settlement, SettlementResult, Settlements } from '@weir/redis/settlements.ts'
import { type CrashPoint, noCrash } from '@weir/runtime/crash-point.ts'
import type { DecisionLog } from '../../ports.ts'
import type { Telling } from './correction-ack-queue.ts'
import { type About, correctionId, encodeCorrectionOpen, parseAbout } from './correction-record.ts'
import { type Corrections, createCorrections } from './corrections.ts'

/** What becomes of the wish to settle a decision. */
export type SettleAnswer =
  | {
      readonly kind: 'settled'
      readonly cost: number
      readonly adjustment: number
      /** Id of the correction record; undefined when there was nothing to correct. */
      readonly correction: string | undefined
      readonly limits: readonly LimitState[]
    }
  | Exclude<SettlementResult, Settled>
  /** Redis is corrected and the record is not safe yet: a repeat writes it. */
  | { readonly kind: 'unrecorded' }

/** A decision that was charged, by whoever may have to give it back. */
export interface ChargedDecision {
  readonly id: string
  readonly about: About
  readonly request: LimitRequest
  readonly decision: Decision
}

export interface CorrectionCounters {
  /** Records of corrections that the journal has. */
  readonly recorded: number
  /** Given back in Redis, and not recorded: too many waited for room. */
  readonly lost: number
}

/** Corrects what decisions were charged: in Redis, and in the sums by a record. */
export interface Settling {
  settle(settlement: Settlement): Promise<SettleAnswer>
  /** For a request that the upstream failed. Repeated only where the journal did not take it: what a process leaves undone when it dies stays charged. */
  giveBack(charged: ChargedDecision): Promise<void>
  readonly counters: CorrectionCounters
}

export interface SettlingParts {
  readonly settlements: Settlements
  readonly store: Pick<LimitStore, 'refund'>
  readonly log: DecisionLog
  readonly corrections?: Corrections | undefined
  /** Goes on where Redis did not hear that a record is safe. */
  readonly telling: Pick<Telling, 'tell'>
  readonly crash?: CrashPoint | undefined
  /** Milliseconds on a clock that is never set. */
  readonly monotonicMs?: () => number
}

/**
 * A process that was stopped for longer between asking Redis and writing may have been taken for dead: it asks again before it
 * writes. Well below the time after which another takes over; see packages/redis/src/settlements.ts.
 */
const staleMs = 20_000
/** Records that the journal took and Redis does not know of yet; a process has that many only while Redis is away. No more are taken then. */
const takenMax = 10_000

/** What an upstream failed is given back again so often while the journal does not take its record. */
const unrecordedAgainMs = 1_000

/** A correction's record that was given to the journal. */
interface Taken {
  /** A stalled disk may take it yet, or has taken it, or refused it in the end. */
  state: 'open' | 'landed' | 'dropped'
}

/** Where no decision can be settled: every one is unknown. */
export const noSettlements: Settlements = {
  settle: async () => ({ kind: 'unknown' }),
  recorded: async () => false,
}

export const createSettling = (parts: SettlingParts): Settling => new SettlingService(parts)

class SettlingService implements Settling {
  readonly #parts: SettlingParts
  readonly #monotonicMs: () => number
  readonly #crash: CrashPoint
  /** By decision and cost: who asks the same meanwhile gets the same answer, and no second record. */
  readonly #underWay = new Map<string, Promise<SettleAnswer>>()
  /** Decisions whose correction this process gave to the journal, until Redis knows: none stands there twice. */
  readonly #taken = new Map<string, Taken>()
  readonly #corrections: Corrections
  #recorded = 0

  constructor(parts: SettlingParts) {
    this.#parts = parts
    this.#monotonicMs = parts.monotonicMs ?? (() => performance.now())
    this.#crash = parts.crash ?? noCrash
    this.#corrections = parts.corrections ?? createCorrections(parts.log)
  }

  get counters(): CorrectionCounters {
    const { recorded, lost } = this.#corrections.counters
    return { recorded: this.#recorded + recorded, lost }
  }

  settle(settlement: Settlement): Promise<SettleAnswer> {
    const { subject, id, cost, isOwn } = settlement
    const name = `${id} ${cost} ${isOwn === true} ${subject}`
    const known = this.#underWay.get(name)
    if (known !== undefined) return known
    const answer = this.#settle(settlement).finally(() => this.#underWay.delete(name))
    this.#underWay.set(name, answer)
    return answer
  }

  /**
   * The order of effects, and what a death after each leaves:
   *
   * 1. Redis corrects the counts and marks the decision as settled and its record as owed. A repeat finds that, and goes on.
   * 2. The record is in the journal. Whoever takes the journal over after a death reads it there, and does 3.
   * 3. Redis marks the record as safe. A repeat only answers. When Redis does not answer, it is told in the background until it does:
   *    otherwise another process would take what is owed over, and write it again.
   */
  async #settle(settlement: Settlement): Promise<SettleAnswer> {
    const askedMs = this.#monotonicMs()
    // As of now: Redis may answer that it is owed, and be told before the answer is here.
    const taken = this.#taken.get(settlement.id)
    const settled = await this.#parts.settlements.settle(settlement)
    this.#crash('settle.corrected')
    if (settled.kind !== 'settled') return settled
    const answer = answerOf(settlement.id, settled)
    if (!settled.isOwed) return answer
    if (this.#monotonicMs() - askedMs > staleMs) return { kind: 'unavailable' }
    if (!(await this.#record(settlement, settled, taken))) return { kind: 'unrecorded' }
    this.#crash('settle.written')
    if (await this.#parts.settlements.recorded(settlement)) this.#taken.delete(settlement.id)
    else this.#parts.telling.tell([settlement], ({ id }) => this.#taken.delete(id))
    this.#crash('settle.recorded')
    return answer
  }

  async #record({ subject, id }: Settlement, settled: Settled, taken: Taken | undefined): Promise<boolean> {
    const { log } = this.#parts
    if (taken?.state === 'open') return false
    if (taken === undefined || taken.state === 'dropped') {
      const about = parseAbout(settled.about)
      // The record is dated like the decision, and its limits say how they stood when it was settled.
      const sinceMs = Math.round(settled.settledAtUs / 1_000) - about.tsMs
      const limits = settled.limits.map((state) => ({ ...state, resetMs: Math.max(0, state.resetMs + sinceMs) }))
      const adjustment = settled.cost - settled.chargedCost
      const line = encodeCorrectionOpen({ decisionId: id, subject, about, adjustment, charged: 'yes', limits })
      if (this.#taken.size >= takenMax || !log.append(subject, line, true)) return false
      const given: Taken = { state: 'open' }
      this.#taken.set(id, given)
      // A repeat, which asks `written` of its own turn, is to give it again; as long as it may still land, that would make two.
      void log.landed().then((isThere) => this.#landed(id, given, isThere))
      this.#recorded += 1
    }
    return await log.written()
  }

  #landed(id: string, given: Taken, isThere: boolean): void {
    given.state = isThere ? 'landed' : 'dropped'
    if (!isThere && this.#taken.get(id) === given) this.#taken.delete(id)
  }

  async giveBack({ id, about, request, decision }: ChargedDecision): Promise<void> {
    const { subject } = request.scope
    if (request.reservation !== undefined) {
      // Redis is corrected then, and nobody else repeats it. No more than were admitted before the journal took nothing.
      while ((await this.settle({ subject, id, cost: 0 })).kind === 'unrecorded') {
        await delay(unrecordedAgainMs, undefined, { ref: false })
      }
      return
    }
    if (request.cost === 0) return
    const isCharged = decision.charged === 'yes'
    const isBack = isCharged && (await this.#parts.store.refund(request, decision))
    const charged = isBack ? 'no' : isCharged ? 'unknown' : decision.charged
    this.#corrections.record({ decisionId: id, subject, about, adjustment: -request.cost, charged, limits: [] })
  }
}

function answerOf(id: string, { cost, chargedCost, limits }: Settled): SettleAnswer {
  const adjustment = cost - chargedCost
  return { kind: 'settled', cost, adjustment, correction: adjustment === 0 ? undefined : correctionId(id), limits }
}
