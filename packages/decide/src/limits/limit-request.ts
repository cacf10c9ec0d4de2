import type { Clock } from '@weir/core/clock.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { LimitRequest, Reservation, ScopeValues } from '@weir/core/limits/limit-store.ts'
import { contextOf, type DecisionRequest } from '../types.ts'

/** Returns the limits that apply to a request. Limits by address do not where the address is not known. */
export function limitsOf({ limits, view, subject, route, ip }: DecisionRequest): readonly Limit[] {
  if (limits !== undefined) return limits
  return ip === '' ? view.resolveWithoutAddress(subject, route) : view.resolveLimits(subject, route)
}

/** Returns the values that the request is counted by. */
export function scopeOf({ subject, keyId, ip, route, method, named }: DecisionRequest): ScopeValues {
  const scope = { subject: subject.id, keyId, ip, route: route.template, method }
  return named === undefined ? scope : { ...scope, named }
}

/** A decision that can be settled is named, and dated, before it is made: its marker and its record say the same. */
export interface ReservedDecision {
  readonly tsMs: number
  readonly reservation: Reservation
}

/** Returns undefined for a request whose decision cannot be settled. */
export function reservedDecisionOf(
  ask: DecisionRequest,
  limits: readonly Limit[],
  clock: Clock,
): ReservedDecision | undefined {
  const { route, isOwnSettlement: isOwn } = ask
  const ttlMs = ask.settleMs ?? route.settleMs
  if (ask.peek || ttlMs === undefined || ask.hasOverrides === true || ask.cost === 0) return undefined
  const tsMs = clock.nowMs()
  const context = JSON.stringify(contextOf(ask, tsMs))
  const largest = limits.length === 0 ? undefined : Math.max(...limits.map(({ capacity }) => capacity))
  return { tsMs, reservation: { id: uuidv7(tsMs), ttlMs, context, settleMax: route.settleMax ?? largest, isOwn } }
}

/** Returns what the store is asked. */
export function requestOf(
  ask: DecisionRequest,
  limits: readonly Limit[],
  reserved: ReservedDecision | undefined,
  clock: Clock,
): LimitRequest {
  const { subject, peek, idempotencyKey, fingerprint, cost } = ask
  const { timeZone, anchor } = subject
  // A request that costs nothing must leave nothing in Redis, or Redis could be filled for nothing. One that no limit
  // applies to has no marker.
  const isUnmarked = peek || cost === 0 || (limits.length === 0 && reserved === undefined)
  const key = isUnmarked ? undefined : idempotencyKey
  const idempotency =
    key === undefined
      ? undefined
      : {
          key,
          id: reserved?.reservation.id ?? uuidv7(clock.nowMs()),
          ...(fingerprint !== undefined && { fingerprint }),
        }
  const reservation = reserved?.reservation
  const hasOverrides = ask.hasOverrides === true
  return { scope: scopeOf(ask), cost, peek, limits, timeZone, anchor, idempotency, reservation, hasOverrides }
}
