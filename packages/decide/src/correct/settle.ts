import { setTimeout as delay } from 'node:timers/promises'
import type { LimitState } from '@weir/core/limits/decision.ts'
import { chargedLimits, chargeWithoutSlots, type LimitStore, rootOf } from '@weir/core/limits/limit-store.ts'
import type { RenewResult, Settled, Settlement, SettlementResult } from '@weir/core/limits/settlement.ts'
import { type CrashPoint, noCrash } from '@weir/runtime/crash-point.ts'
import type { DecisionLog, Settlements } from '../ports.ts'
import type { ChargedDecision } from '../types.ts'
import type { CorrectionAckQueue } from './correction-ack-queue.ts'
import { correctionId, encodeCorrectionOpen, parseContext } from './correction-record.ts'
import type { Corrections } from './corrections.ts'

/** What a caller that settles a decision is answered. */
export type SettleAnswer =
  | {
      readonly kind: 'settled'
      readonly cost: number
      readonly units?: Settled['units']
      readonly adjustment: number
      /** Id of the correction record; undefined when there was nothing to correct. */
      readonly correction: string | undefined
      readonly limits: readonly LimitState[]
    }
  | Exclude<SettlementResult, Settled>
  /** Redis is corrected and the record is not safe yet: a repeat writes it. */
  | { readonly kind: 'unrecorded' }

/** What corrects decisions is made of. */
export interface SettlingParts {
  /** Without them every decision is unknown. */
  readonly settlements?: Settlements | undefined
  readonly store: Pick<LimitStore, 'refund'>
  readonly log: DecisionLog
  readonly corrections: Corrections
  /** Retries where Redis did not confirm that a record is safe; without it, only a repeat does. */
  readonly ackQueue?: Pick<CorrectionAckQueue, 'enqueue'> | undefined
  readonly crash?: CrashPoint | undefined
}

/**
 * A process that was stopped for longer between asking Redis and writing may have been taken for dead: it asks again
 * before it writes. Well below the time after which another takes over; see packages/redis/src/settlements.ts.
 */
const staleMs = 20_000
/**
 * Records that the journal has and Redis does not know of; a process has that many only while Redis is down, and then
 * accepts no more.
 */
const givenMax = 10_000

/** How often a refund after an upstream's failure is tried again while the journal does not accept its record. */
const unrecordedRetryMs = 1_000

/** A correction's record that was given to the journal. While it is in doubt, a stalled disk may still write it. */
type GivenRecord = { state: 'in-doubt' | 'written' | 'dropped' }

/** Corrects what decisions were charged: in Redis, and in the sums by a record. */
export class Settling {
  readonly #parts: SettlingParts
  /** By decision and cost: an identical call meanwhile gets the same answer, and no second record. */
  readonly #underWay = new Map<string, Promise<SettleAnswer>>()
  /** Decisions whose correction this process gave to the journal, until Redis knows: none is written twice. */
  readonly #given = new Map<string, GivenRecord>()
  #recorded = 0

  constructor(parts: SettlingParts) {
    this.#parts = parts
  }

  /**
   * `recorded`: correction records that the journal has. `lost`: refunds without a record, because too many waited for
   * space.
   */
  get counters(): { readonly recorded: number; readonly lost: number } {
    const { recorded, lost } = this.#parts.corrections.counters
    return { recorded: this.#recorded + recorded, lost }
  }

  settle(settlement: Settlement): Promise<SettleAnswer> {
    const { subject, id, cost = '', units = [], isOwn, isUnused } = settlement
    const name = `${id} ${cost} ${JSON.stringify([...units])} ${isOwn === true} ${isUnused === true} ${subject}`
    const known = this.#underWay.get(name)
    if (known !== undefined) return known
    const answer = this.#settle(settlement).finally(() => this.#underWay.delete(name))
    this.#underWay.set(name, answer)
    return answer
  }

  /** Keeps a decision open to be settled, and its slots taken, for as long again. */
  async renew(settlement: Settlement): Promise<RenewResult> {
    return (await this.#parts.settlements?.renew(settlement)) ?? { kind: 'unknown' }
  }

  /**
   * The order of effects, and what a death after each leaves:
   *
   * 1. Redis corrects the counts and marks the decision as settled and its record as pending. A repeat finds that, and
   *    goes on.
   * 2. The record is in the journal. The process that takes the journal over after a death reads it there, and does 3.
   * 3. Redis marks the record as safe. A repeat only answers. When Redis does not answer, the acknowledgement queue
   *    retries: otherwise another process would take over the pending record, and write it again.
   */
  async #settle(settlement: Settlement): Promise<SettleAnswer> {
    const { settlements, ackQueue, crash = noCrash } = this.#parts
    if (settlements === undefined) return { kind: 'unknown' }
    const askedMs = performance.now()
    // Read before Redis is asked: it may answer that the record is pending, and have it confirmed before the answer is
    // here.
    const given = this.#given.get(settlement.id)
    const settled = await settlements.settle(settlement)
    crash('settle.corrected')
    if (settled.kind !== 'settled') return settled
    const answer = answerOf(settlement.id, settled)
    if (!settled.isRecordPending) return answer
    if (performance.now() - askedMs > staleMs) return { kind: 'unavailable' }
    if (!(await this.#record(settlement, settled, given))) return { kind: 'unrecorded' }
    crash('settle.written')
    const acked = () => this.#given.delete(settlement.id)
    if (await settlements.confirmRecorded(settlement)) acked()
    else ackQueue?.enqueue([settlement], acked)
    crash('settle.recorded')
    return answer
  }

  async #record(settlement: Settlement, settled: Settled, known: GivenRecord | undefined): Promise<boolean> {
    const { log } = this.#parts
    const { subject, id } = settlement
    if (known?.state === 'in-doubt') return false
    if (known?.state !== 'written') {
      const line = correctionLine(settlement, settled)
      if (this.#given.size >= givenMax || !log.append(subject, line, true)) return false
      const given: GivenRecord = { state: 'in-doubt' }
      this.#given.set(id, given)
      // A repeat must not give it to the journal again as long as a stalled disk may still write it.
      void log.finallyWritten().then((isWritten) => {
        given.state = isWritten ? 'written' : 'dropped'
        if (!isWritten && this.#given.get(id) === given) this.#given.delete(id)
      })
      this.#recorded += 1
    }
    return await log.writtenInTime()
  }

  /**
   * Refunds a request that the upstream failed. Repeated only where the journal did not accept its record: what a
   * process leaves undone when it dies stays charged.
   */
  async refund({ id, context, request, decision }: ChargedDecision): Promise<void> {
    const { subject } = request.scope
    if (request.reservation !== undefined) {
      // Redis is corrected then, and no other process repeats it. No more than were admitted before the journal
      // accepted nothing.
      while ((await this.settle({ subject, root: rootOf(request.scope), id, cost: 0 })).kind === 'unrecorded') {
        await delay(unrecordedRetryMs, undefined, { ref: false })
      }
      return
    }
    if (request.cost === 0 && request.units === undefined) return
    const isCharged = decision.charged === 'yes'
    const charge = chargeWithoutSlots(request, decision)
    const hasNone = chargedLimits(request, charge).length === 0
    const isBack = isCharged && (hasNone || (await this.#parts.store.refund(request, charge)))
    const charged = isBack ? 'no' : isCharged ? 'unknown' : decision.charged
    const adjustment = -request.cost
    const units = request.units && Object.fromEntries([...request.units].map(([unit, used]) => [unit, -used]))
    this.#parts.corrections.record({ decisionId: id, subject, context, adjustment, charged, limits: [], units })
  }
}

/** The record is dated like the decision, and its limits say how they stood when it was settled. */
function correctionLine({ subject, id: decisionId, basis, dims }: Settlement, settled: Settled): string {
  const { each, ...known } = parseContext(settled.context)
  const context = { ...known, ...(dims && { dims }) }
  const sinceMs = Math.round(settled.settledAtUs / 1_000) - context.tsMs
  const limits = settled.limits.map((state) => ({ ...state, resetMs: Math.max(0, state.resetMs + sinceMs) }))
  const adjustment = settled.cost - settled.chargedCost
  // A lease is given back as what is held, and has no units besides its cost.
  const { held = undefined, units = undefined } = each === undefined ? settled : {}
  const countAdjustment = each === undefined ? undefined : Math.ceil(adjustment / each)
  const changes = { adjustment, countAdjustment, charged: 'yes' } as const
  return encodeCorrectionOpen({ decisionId, subject, context, ...changes, limits, held, units, basis })
}

function answerOf(id: string, { cost, chargedCost, units, limits }: Settled): SettleAnswer {
  const adjustment = cost - chargedCost
  const isCorrected = adjustment !== 0 || units !== undefined
  return { kind: 'settled', cost, units, adjustment, correction: isCorrected ? correctionId(id) : undefined, limits }
}
