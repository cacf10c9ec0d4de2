import { allowed, type Decision } from './decision.ts'
import { limitsPerDecisionMax } from './limit.ts'
import type { LimitRequest } from './limit-store.ts'

/**
 * A caller's 256 characters may be two units each, after the entry point's prefix; the marker's key has a hash of it.
 */
const idempotencyKeyLengthMax = 528
/** As lua/scripts/decide.lua takes it. */
const idempotencyIdLengthMax = 64

/** A day: a later settlement would fall into another period of its quota. Also checked in lua/lib/reservation.lua. */
export const settleMsMax = 86_400_000
/** The parts of a decision that leave the process: names and ids of bounded length. */
const aboutLengthMax = 8_192

/**
 * Throws for a request that no entry point should have let through, so that it does not fail the others of its call.
 */
export function checkLimitRequest({ cost, limits, idempotency, reservation }: LimitRequest): void {
  if (!Number.isSafeInteger(cost) || cost < 0) throw new RangeError(`cost ${cost} is not a non-negative safe integer`)
  if (limits.length > limitsPerDecisionMax) {
    throw new RangeError(`${limits.length} limits in one decision, at most ${limitsPerDecisionMax}`)
  }
  if (reservation !== undefined) {
    const { keptMs, about } = reservation
    const isKept = Number.isSafeInteger(keptMs) && keptMs > 0 && keptMs <= settleMsMax
    if (!isKept) throw new RangeError(`a decision to be settled in ${keptMs} ms, at most ${settleMsMax}`)
    if (about.length > aboutLengthMax) throw new RangeError(`${about.length} characters about a decision`)
  }
  if (idempotency === undefined) return
  const { key, id } = idempotency
  if (key === '' || key.length > idempotencyKeyLengthMax) {
    throw new RangeError(`an idempotency key of ${key.length} characters, at most ${idempotencyKeyLengthMax}`)
  }
  if (id === '' || id.length > idempotencyIdLengthMax) throw new RangeError(`${JSON.stringify(id)} is no record's id`)
}

/** What a request that no limit applies to gets, without asking anyone. */
export const unlimitedDecision: Decision = allowed('ok')
