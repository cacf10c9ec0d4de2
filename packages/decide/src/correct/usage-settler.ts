import { setTimeout as delay } from 'node:timers/promises'
import { rootOf, type Units } from '@weir/core/limits/limit-store.ts'
import type { Settlement, UnitsBasis } from '@weir/core/limits/settlement.ts'
import type { ChargedDecision } from '../types.ts'
import type { Corrections } from './corrections.ts'
import type { Settling } from './settle.ts'

/** What a request used, known at its end. */
export interface Usage {
  /** Undefined where it stays as it was charged. */
  readonly cost?: number | undefined
  readonly units: Units
  readonly basis: UnitsBasis
  /** Its labels, where they are not those of the decision. */
  readonly dims?: Settlement['dims']
}

/** Settlements that wait for Redis: as many as the journal takes corrections meanwhile. Beyond it holds stay. */
const openMax = 10_000
const firstPauseMs = 100
const longestPauseMs = 5_000
const drainMs = 2_000

/** Settles what requests through this process held, each until Redis and the journal have it. */
export class UsageSettler {
  /**
   * Since the process started, by how their units are known; of `lost` what was held stays charged, and of `superseded`
   * what a caller with a token had settled otherwise.
   */
  readonly counters = { reported: 0, counted: 0, bound: 0, lost: 0, superseded: 0 }
  /** Exchanges that used more of a unit than they held, by unit: something bounds it wrongly. */
  readonly exceeded: Record<string, number> = {}
  readonly #settling: Pick<Settling, 'settle'>
  readonly #corrections: Corrections
  readonly #open = new Set<Promise<boolean>>()

  constructor(settling: Pick<Settling, 'settle'>, corrections: Corrections) {
    this.#settling = settling
    this.#corrections = corrections
  }

  /** Resolves once it is settled, or given up. No answer waits for it. */
  async settle(charged: ChargedDecision, usage: Usage): Promise<void> {
    if (this.#open.size >= openMax) {
      this.counters.lost += 1
      return
    }
    const done = this.#settleUntilDone(charged, usage)
    this.#open.add(done)
    try {
      this.counters[(await done) ? usage.basis : 'superseded'] += 1
      this.#countExceeded(charged, usage)
    } finally {
      this.#open.delete(done)
    }
  }

  #countExceeded({ request }: ChargedDecision, { units }: Usage): void {
    for (const [unit, used] of units) {
      const held = request.units?.get(unit)
      if (held !== undefined && used > held) this.exceeded[unit] = (this.exceeded[unit] ?? 0) + 1
    }
  }

  /** At a stop: waits for what is being settled, for some seconds. What is not settled by then stays as it was held. */
  async drain(): Promise<void> {
    await Promise.race([Promise.allSettled(this.#open), delay(drainMs, undefined, { ref: false })])
  }

  /** Resolves to whether this usage counts: not where another caller had settled the request to something else. */
  async #settleUntilDone(charged: ChargedDecision, { cost, units, basis, dims }: Usage): Promise<boolean> {
    const { id, request, decision, context } = charged
    const { subject } = request.scope
    const root = rootOf(request.scope)
    // Where nothing was held the record alone says what was used.
    const isHeld = request.reservation !== undefined && request.limits.length > 0 && decision.charged === 'yes'
    for (let pauseMs = firstPauseMs; isHeld; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      const { kind } = await this.#settling.settle({ subject, root, id, cost, units, basis, dims })
      if (kind === 'settled' || kind === 'conflict') return kind === 'settled'
      if (kind !== 'unavailable' && kind !== 'unrecorded' && kind !== 'busy') break
      await delay(pauseMs, undefined, { ref: false })
    }
    const held = request.units && Object.fromEntries(request.units)
    this.#corrections.record({
      decisionId: id,
      subject,
      context: { ...context, ...(dims && { dims }) },
      adjustment: cost === undefined ? 0 : cost - request.cost,
      charged: decision.charged,
      limits: [],
      held,
      units: Object.fromEntries(units),
      basis,
    })
    return true
  }
}
