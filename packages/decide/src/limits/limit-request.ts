import type { Clock } from '@weir/core/clock.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { countsInFlight } from '@weir/core/limits/algorithm-facts.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import {
  costMax,
  type HeldSlots,
  type LimitRequest,
  type Reservation,
  type ScopeValues,
} from '@weir/core/limits/limit-store.ts'
import type { RateBook } from '@weir/core/prices/rate-book.ts'
import { withRequest } from '@weir/core/prices/rate-card.ts'
import { ancestorsOf } from '@weir/policy/ancestors.ts'
import { slotMs } from '../slots/slot-keeper.ts'
import { contextOf, type DecisionRequest } from '../types.ts'

/** Returns the limits that apply to a request. Limits by address do not where the address is not known. */
export function limitsOf({ limits, view, subject, route, ip }: DecisionRequest): readonly Limit[] {
  if (limits !== undefined) return limits
  return ip === '' ? view.resolveWithoutAddress(subject, route) : view.resolveLimits(subject, route)
}

/**
 * Returns the request with what it costs in money, of one that no meter measures. Its caller may say that it is more.
 * Descriptors have costs of their own.
 */
export function withMoney(ask: DecisionRequest, rates: RateBook, nowMs: number): DecisionRequest {
  if (!rates.pricesEvery || ask.meter !== undefined || ask.hasOverrides === true) return ask
  const units = new Map(ask.units)
  for (const { card, nanos, lines } of rates.priceAll(withRequest(new Map(), ask.cost), {
    atMs: nowMs,
    values: new Map(),
  })) {
    if (lines.length > 0) units.set(card.name, Math.max(nanos, units.get(card.name) ?? 0))
  }
  return units.size === 0 ? ask : { ...ask, units }
}

/** Returns the values that the request is counted by. */
export function scopeOf({ subject, keyId, ip, route, method, named }: DecisionRequest): ScopeValues {
  const above = subject.parent && ancestorsOf(subject)
  const scope = { subject: subject.id, keyId, ip, route: route.template, method, above }
  return named === undefined ? scope : { ...scope, named }
}

/** A decision that can be settled is named, and dated, before it is made: its marker and its record say the same. */
export interface ReservedDecision {
  readonly tsMs: number
  readonly reservation: Reservation
}

/** Whether the request takes nothing that is worth settling. */
const isFree = ({ cost, units }: Pick<DecisionRequest, 'cost' | 'units'>, limits: readonly Limit[] = []) =>
  cost === 0 && [...(units?.values() ?? [])].every((quantity) => quantity === 0) && !limits.some(countsInFlight)

/** For how long the decision on it can be settled; undefined if it cannot. */
export function settleMsOf(ask: DecisionRequest, limits?: readonly Limit[]): number | undefined {
  const settleMs = ask.settleMs ?? ask.route.settleMs
  if (settleMs === undefined || ask.peek || ask.hasOverrides === true) return undefined
  // What a meter bounds by nothing may use something all the same.
  return ask.meter !== undefined || !isFree(ask, limits) ? settleMs : undefined
}

/** Returns undefined for a request whose decision cannot be settled. */
export function reservedDecisionOf(
  ask: DecisionRequest,
  limits: readonly Limit[],
  clock: Clock,
): ReservedDecision | undefined {
  const { route, isOwnSettlement: isOwn } = ask
  const ttlMs = settleMsOf(ask, limits)
  if (ttlMs === undefined) return undefined
  const tsMs = clock.nowMs()
  const context = JSON.stringify(contextOf(ask, tsMs))
  const counted = limits.filter(({ unit }) => unit === undefined)
  const most = counted.length === 0 ? costMax : Math.max(...counted.map(({ capacity }) => capacity))
  const largest = limits.length === 0 ? undefined : most
  return { tsMs, reservation: { id: uuidv7(tsMs), ttlMs, context, settleMax: route.settleMax ?? largest, isOwn } }
}

/** The proxy renews its slots; those of a check last for as long as it can be settled, else as their limit says. */
function slotsOf(ask: DecisionRequest, limits: readonly Limit[], settleMs: number | undefined): HeldSlots | undefined {
  if (!ask.view.hasSlots || ask.peek || !limits.some(countsInFlight)) return undefined
  if (ask.entryPoint === 'proxy') return { ms: slotMs, taken: [] }
  return settleMs === undefined ? undefined : { ms: settleMs }
}

/** Returns what the store is asked. */
export function requestOf(
  ask: DecisionRequest,
  limits: readonly Limit[],
  reserved: ReservedDecision | undefined,
  clock: Clock,
): LimitRequest {
  const { subject, peek, idempotencyKey, fingerprint, cost, units } = ask
  const { timeZone, anchor } = subject
  // A request that costs nothing must leave nothing in Redis, or Redis could be filled for nothing. One that no limit
  // applies to has no marker.
  const isUnmarked = peek || isFree(ask) || (limits.length === 0 && reserved === undefined)
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
  const slots = slotsOf(ask, limits, reservation?.ttlMs)
  const asked = {
    scope: scopeOf(ask),
    cost,
    peek,
    limits,
    timeZone,
    anchor,
    idempotency,
    reservation,
    hasOverrides,
    slots,
  }
  return units === undefined ? asked : { ...asked, units }
}
