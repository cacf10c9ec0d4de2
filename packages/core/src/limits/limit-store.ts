import { countsInFlight } from './algorithm-facts.ts'
import { allowed, type Decision } from './decision.ts'
import { chargesBeyond, countsBeyond } from './exceeding.ts'
import { type Limit, limitsPerDecisionMax, partText, type ScopePart } from './limit.ts'

/** Values of scopes with a name (`header:x-team`), by the scope's whole text. */
export type NamedValues = ReadonlyMap<string, string>

/** The values that scopes are filled from. `route` is the template, `ip` the address or IPv6 prefix as text. */
export interface ScopeValues {
  readonly subject: string
  readonly keyId: string
  readonly ip: string
  readonly route: string
  readonly method: string
  /** An absent one counts as empty. */
  readonly named?: NamedValues
  /** The subject's ancestors, the nearest first; absent for none. */
  readonly above?: readonly Ancestor[] | undefined
}

/** A subject above another, with its calendar. */
export interface Ancestor {
  readonly id: string
  readonly timeZone: string
  readonly anchor: number
}

/** The subject in whose slot all of its tree is counted: the topmost. */
export const rootOf = ({ subject, above }: Pick<ScopeValues, 'subject' | 'above'>): string =>
  above?.at(-1)?.id ?? subject

/** The subject that a limit counts. */
export const countedSubject = (
  { level = 0 }: Limit,
  { subject, above }: Pick<ScopeValues, 'subject' | 'above'>,
): string => above?.[level - 1]?.id ?? subject

/** The calendar of the subject that a limit counts. */
export const calendarOf = (
  { level = 0 }: Limit,
  { scope, timeZone, anchor }: Pick<LimitRequest, 'scope' | 'timeZone' | 'anchor'>,
): Pick<Ancestor, 'timeZone' | 'anchor'> => scope.above?.[level - 1] ?? { timeZone, anchor }

/** The text that one part of a scope counts by; empty for the subject, which every count of a subject has. */
export function scopeValue(part: ScopePart, values: ScopeValues, override: Limit['override']): string {
  switch (part.kind) {
    case 'subject':
    case 'global':
      return ''
    case 'key':
      return values.keyId
    case 'ip':
      return values.ip
    case 'route':
      return values.route
    case 'method':
      return values.method
    case 'attribute':
      return (override ?? values).named?.get(partText(part)) ?? ''
    default:
      return values.named?.get(partText(part)) ?? ''
  }
}

/** One check: which limits apply, for which values, and what it costs. */
export interface LimitRequest {
  readonly scope: ScopeValues
  /** Units this request consumes; a non-negative safe integer. */
  readonly cost: number
  /** What it consumes of other units by their names, each as `cost`. With a reservation they are held, not used. */
  readonly units?: Units | undefined
  /** Look, but charge nothing. */
  readonly peek: boolean
  /** At most `limitsPerDecisionMax`; the first that refuses names the denial. */
  readonly limits: readonly Limit[]
  /** Whether limits have an `override`, by which they are counted and charged. No two of them have the same key. */
  readonly hasOverrides?: boolean
  /** IANA zone in which the subject's calendar periods begin. */
  readonly timeZone: string
  /** Day of the month on which the subject's months begin, 1 to 31; clamped to the month's last day. */
  readonly anchor: number
  /** Under a key that was admitted in the last minutes, that first answer is given again and nothing is charged. */
  readonly idempotency?: Idempotency | undefined
  /** Absent where nobody renews or gives back its slots: they then last as long as their limit says. */
  readonly slots?: HeldSlots | undefined
  /** Set if the cost will be settled later: the charge is kept until then. */
  readonly reservation?: Reservation | undefined
}

/** What a request takes from limits with `concurrency`. */
export interface HeldSlots {
  /** After how long they end unless they are renewed: at most a day. */
  readonly ms: number
  /**
   * Present where a process renews them and gives them back; else settling does. The store fills it; meaningless unless
   * the decision is charged.
   */
  readonly taken?: SlotCharge[]
}

/** Slots of one request whose counts are in one slot of a Cluster. */
export interface SlotCharge {
  /** The request with these limits alone. */
  readonly request: LimitRequest
  /** Redis's clock when they were taken, or renewed last. */
  readonly atUs: number
}

/** The most units that a request may cost, at every entry point: keeps ClickHouse's sums exact, see docs/usage.md. */
export const costMax = 1_000_000_000

/** Quantities by the names of their units. No prototype's names may be among them, as they come from callers. */
export type Units = ReadonlyMap<string, number>

/** Most units of a request besides its cost. */
export const unitsPerRequestMax = 16

/** Units that a request takes from one of its limits. */
export function costOf({ override, unit, hold }: Limit, { cost, units }: Pick<LimitRequest, 'cost' | 'units'>): number {
  if (override !== undefined) return override.cost
  if (unit === undefined) return cost
  const most = unit === 'requests' ? 1 : (units?.get(unit) ?? 0)
  return hold === undefined ? most : Math.min(most, hold)
}

/** Whether its limits take different units of a request. */
export const hasCosts = ({ hasOverrides, cost, limits }: Pick<LimitRequest, 'hasOverrides' | 'cost' | 'limits'>) =>
  hasOverrides === true || limits.some(({ unit }) => unit !== undefined && (cost !== 1 || unit !== 'requests'))

/**
 * For how long the limit says what this request takes from it is only held; undefined where it does not say, or where
 * the units are used. A rate window is over before anybody asks.
 */
export const holdMsOf = ({ unit, span }: Limit, { reservation }: Pick<LimitRequest, 'reservation'>) =>
  span.kind === 'period' && unit !== undefined && unit !== 'requests' ? reservation?.ttlMs : undefined

/** A decision as a refund needs it: when it was charged, and which shadow limits it was not charged to. */
export type Charge = Pick<Decision, 'atUs' | 'exceededMask'>

/** The charge without what its process holds and gives back by itself. */
export function chargeWithoutSlots({ limits, slots }: LimitRequest, charge: Charge): Charge {
  if (slots?.taken === undefined) return charge
  const held = limits.reduce((bits, limit, at) => (countsInFlight(limit) ? bits | (1 << at) : bits), 0)
  return { ...charge, exceededMask: charge.exceededMask | held }
}

/** A gateway gives back each slot that it asked for, whatever it was answered. */
const isGivenBack = (limit: Limit) => chargesBeyond(limit) && countsInFlight(limit)

/**
 * The limits whose charge Weir gives back: all but those that had no capacity and let the request pass uncounted, and a
 * gateway's slots.
 */
export const chargedLimits = ({ limits }: LimitRequest, { exceededMask }: Charge): readonly Limit[] =>
  limits.filter((limit, at) => !isGivenBack(limit) && ((exceededMask & (1 << at)) === 0 || countsBeyond(limit)))

interface Idempotency {
  /** The caller's key; meant within its subject. At most 528 UTF-16 units. */
  readonly key: string
  /** The id of this decision's record; a repeat gets the first one's. At most 51 letters, digits and `-`. */
  readonly id: string
  /** 12 characters of a hash of what is asked; a repeat with others asks something else. Absent for whatever it is. */
  readonly fingerprint?: string
  /** Whose key it is, where the scope's subject is another. */
  readonly subject?: string
}

/** Says what is known of the record of an admission under an idempotency key. */
export type RecordClaim =
  | { readonly kind: 'recorded'; readonly recordId: string }
  /** No process has recorded it; the caller is to do that now. */
  | { readonly kind: 'claimed' }
  /** Another process may be about to record it, or Redis did not answer. */
  | { readonly kind: 'unknown' }

/** The charge of a decision whose cost is known only at its end: it is kept for a while, and can be settled once. */
export interface Reservation {
  /** The id that its record will have. */
  readonly id: string
  /** For how long it can be settled: at most a day. */
  readonly ttlMs: number
  /** What is returned to the caller that settles it. At most 8,192 characters. */
  readonly context: string
  /**
   * Most units that it can be settled to, or its charge if that is more; undefined for whatever a decision may cost.
   */
  readonly settleMax?: number | undefined
  /** Its subject may settle it, to no more than its charge; limits that others share then keep their charge. */
  readonly isOwn?: boolean | undefined
  /** In a Cluster, the key of this part's charge, if it is not in the subject's slot. */
  readonly key?: string
  /** In a Cluster, the keys of the other parts' charges. */
  readonly siblingKeys?: readonly string[]
}

/** Decides and charges in one step. A refusal charges nothing on any limit; see lua/scripts/decide.lua. */
export interface LimitStore {
  /** Never rejects for a slow or missing store: that is a decision with reason `unavailable`. */
  decide(request: LimitRequest): Promise<Decision>
  /**
   * Gives back what this very request was charged by this very decision, as far as it still counts; never more, and a
   * block stays. Only for a decision that was charged, and once. Resolves to whether anything was given back. A slow or
   * missing store is `false`, and it is not tried again.
   */
  refund(request: LimitRequest, charge: Charge): Promise<boolean>
}

/**
 * Renews and gives back slots. Neither is tried again, as a slot that is not renewed ends by itself; but with `atUs` 0
 * what Redis was not even asked follows once it is there, in the same order.
 */
export interface SlotStore {
  /**
   * Resolves to Redis's clock from which they last again, whether they fit or not; 0 if Redis did not answer. With
   * `atUs` 0 they count as refused: the next that is given back is one of these.
   */
  renew(slot: SlotCharge): Promise<number>
  /**
   * Gives back a charge, of other limits too; with `atUs` 0 what is charged now, and of slots those that end first.
   * Never more than was charged. Resolves to Redis's clock; to 0 if nothing was given back, or Redis did not answer.
   */
  release(slot: SlotCharge): Promise<number>
}

/**
 * A caller's 256 characters may be two units each, after the entry point's prefix; the marker's key has a hash of it.
 */
const idempotencyKeyLengthMax = 528
/** As lua/scripts/decide.lua takes it. */
const idempotencyIdLengthMax = 64

/** A day: a later settlement would fall into another period of its quota. Also checked in lua/lib/reservation.lua. */
export const settleMsMax = 86_400_000
/** The parts of a decision that leave the process: names and ids of bounded length. */
const contextLengthMax = 8_192

/**
 * Throws for a request that no entry point should have let through, so that it does not fail the others of its call.
 */
export function checkLimitRequest({ cost, limits, idempotency, reservation }: LimitRequest): void {
  if (!Number.isSafeInteger(cost) || cost < 0) throw new RangeError(`cost ${cost} is not a non-negative safe integer`)
  if (limits.length > limitsPerDecisionMax) {
    throw new RangeError(`${limits.length} limits in one decision, at most ${limitsPerDecisionMax}`)
  }
  if (reservation !== undefined) {
    const { ttlMs, context } = reservation
    const isValid = Number.isSafeInteger(ttlMs) && ttlMs > 0 && ttlMs <= settleMsMax
    if (!isValid) throw new RangeError(`a decision to be settled in ${ttlMs} ms, at most ${settleMsMax}`)
    if (context.length > contextLengthMax) throw new RangeError(`${context.length} characters about a decision`)
  }
  if (idempotency === undefined) return
  const { key, id } = idempotency
  if (key === '' || key.length > idempotencyKeyLengthMax) {
    throw new RangeError(`an idempotency key of ${key.length} characters, at most ${idempotencyKeyLengthMax}`)
  }
  if (id === '' || id.length > idempotencyIdLengthMax) throw new RangeError(`${JSON.stringify(id)} is no record's id`)
}

/** What a request that no limit applies to gets, without asking anyone. */
export const unlimitedDecision: Decision = allowed('ok', { source: 'none' })
