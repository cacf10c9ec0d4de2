import { algorithmFacts, countsInFlight } from './algorithm-facts.ts'
import type { Decision, LimitState } from './decision.ts'
import { blockMsMaxOf, countsBeyond, refuses, shutOutMsOf } from './exceeding.ts'
import { isShared, type Limit, type PeriodBoundaries } from './limit.ts'
import {
  type Charge,
  chargedLimits,
  costOf,
  hasCosts,
  holdMsOf,
  type LimitRequest,
  type Reservation,
  type ScopeValues,
} from './limit-store.ts'
import { decisionOf } from './raw-decision.ts'
import { malformed, modes, operations, reservedCosts, statuses } from './script-protocol.ts'

/** The wire format of lua/scripts/decide.lua, whose header is its only description. */

/** One request of a call. */
export type Operation =
  | { readonly kind: 'decide'; readonly request: LimitRequest }
  | { readonly kind: 'refund' | 'renew'; readonly request: LimitRequest; readonly charge: Charge }

/**
 * Most requests of a call, so that a run takes about a millisecond; large logs take more. Also checked in the script.
 */
export const requestsPerCallMax = 32

/** What a call of decide.lua is given. */
export interface ScriptCall {
  readonly keys: readonly string[]
  /** Time, limits, requests, and the texts of reservations. */
  readonly argv: readonly [string, string, string, ...string[]]
}

/** Keys and boundaries that the codec needs from its caller. */
export interface CallParts {
  keyOf(limit: Limit, scope: ScopeValues): string
  /** Where the block of a limit that has one is kept. */
  blockKeyOf(limit: Limit, scope: ScopeValues): string
  /** Where the first answer under an idempotency key is kept. */
  markerKeyOf(scope: ScopeValues, idempotencyKey: string): string
  /** Where the charge of a decision that will be settled is kept. */
  settlementKeyOf(request: LimitRequest, reservation: Reservation): string
  /** Where the markers that a request leaves are counted; undefined where another part of it is counted. */
  tallyKeyOf(request: LimitRequest): string | undefined
  /** Markers that a subject may have; more are refused. */
  readonly markersMax: number
  boundariesOf(limit: Limit, request: LimitRequest): PeriodBoundaries | undefined
  /** The test's time; undefined for Redis's own clock. */
  readonly nowMs: number | undefined
}

/** Texts of limits without a calendar never change, and are the same for every request. */
const windowTexts = new WeakMap<Limit, string>()
const periodTexts = new WeakMap<Limit, WeakMap<PeriodBoundaries, string>>()

function modeOf(limit: Limit): number {
  if (countsBeyond(limit)) return modes.CHARGE
  if (!refuses(limit)) return modes.PASS
  return limit.onExceed.kind === 'delay' ? modes.DELAY : modes.DENY
}

function blockText(limit: Limit): string {
  const { blockLengths } = limit
  return blockLengths === undefined || shutOutMsOf(limit) === 0 ? `${blockMsMaxOf(limit)}` : `[${blockLengths.join()}]`
}

const headText = (limit: Limit) => `["${limit.algorithm}",${modeOf(limit)},${blockText(limit)},${limit.size}`

function windowText(limit: Limit, ms: number): string {
  const known = windowTexts.get(limit)
  if (known !== undefined) return known
  const burst = algorithmFacts[limit.algorithm].hasBurst ? `,${limit.capacity}` : ''
  const text = `${headText(limit)},${ms}${burst}]`
  windowTexts.set(limit, text)
  return text
}

function periodText(limit: Limit, boundaries: PeriodBoundaries | undefined): string {
  if (boundaries === undefined) throw new Error(`limit ${limit.name} has a calendar period but no boundaries`)
  const texts = periodTexts.get(limit) ?? new WeakMap<PeriodBoundaries, string>()
  const known = texts.get(boundaries)
  if (known !== undefined) return known
  periodTexts.set(limit, texts)
  const text = `${headText(limit)},0,${boundaries.join(',')}]`
  texts.set(boundaries, text)
  return text
}

/** One cost for all, or a list of each limit's. */
const costText = (request: LimitRequest, limits: readonly Limit[], each: (limit: Limit) => number): string =>
  hasCosts(request) ? `[${limits.map(each).join()}]` : `${request.cost}`

/** Positions from 1, in order of first use. */
function positionOf(positions: Map<string, number>, text: string): number {
  const known = positions.get(text)
  if (known !== undefined) return known
  const position = positions.size + 1
  positions.set(text, position)
  return position
}

/**
 * A limit of a decision that will be settled: its name, its capacity, the key of its count, its definition for the
 * script, and 1 if its count is not to be corrected, 2 if it gives its slot back, or the unit that it counts, with what
 * it was charged if that is less than what is held of the unit.
 */
export type SettlementLimit = readonly [
  name: string,
  capacity: number,
  key: string,
  definition: string,
  kind?: 1 | 2 | string,
  charged?: number,
]

/**
 * What decide.lua keeps, as JSON, of a decision that will be settled. Markers in Redis have these names: `about`
 * is the reservation's context, `beside` its sibling keys.
 */
export interface SettlementText {
  readonly about: string
  readonly limits: readonly SettlementLimit[]
  readonly beside?: readonly string[] | undefined
  /** What it costs, where its limits take different units; else the marker's head says it. */
  readonly cost?: number | undefined
  /** What it holds of other units. */
  readonly units?: Readonly<Record<string, number>> | undefined
  /** As in `Reservation`. Decisions of versions before have neither. */
  readonly settleMax?: number | undefined
  readonly isOwn?: boolean | undefined
}

/** Collects one call's keys and limits; each is sent once, however many requests name it. */
class CallWriter {
  readonly keys = new Map<string, number>()
  readonly limits = new Map<string, number>()
  readonly texts: string[] = []
  readonly #parts: CallParts

  constructor(parts: CallParts) {
    this.#parts = parts
  }

  decide(request: LimitRequest): string {
    const { idempotency, reservation, scope } = request
    const asked = (limit: Limit) => (limit.override?.isPeek === true ? reservedCosts.PEEK : costOf(limit, request))
    const isMarked = !request.peek && (idempotency !== undefined || reservation !== undefined)
    const operation = request.peek ? operations.PEEK : operations.CHARGE
    const cost = costText(request, request.limits, asked)
    let text = isMarked ? this.#marks(request, cost) : `[${operation},${cost}`
    for (const limit of request.limits) {
      text += this.#limit(limit, request)
      if (blockMsMaxOf(limit) > 0) text += `,${positionOf(this.keys, this.#parts.blockKeyOf(limit, scope))}`
    }
    return `${text}]`
  }

  /** What a request with an idempotency key, or one that will be settled, begins with. */
  #marks(request: LimitRequest, cost: string): string {
    const { idempotency, reservation, scope } = request
    const tallyKey = this.#parts.tallyKeyOf(request)
    let text = `,${tallyKey === undefined ? 0 : positionOf(this.keys, tallyKey)},${this.#parts.markersMax}`
    if (idempotency !== undefined) {
      const marker = positionOf(this.keys, this.#parts.markerKeyOf(scope, idempotency.key))
      const { id, fingerprint } = idempotency
      text += `,${JSON.stringify(fingerprint === undefined ? id : `${id}~${fingerprint}`)},${marker}`
    }
    if (reservation === undefined) return `[${operations.CHARGE_ONCE},${cost}${text}`
    const marker = positionOf(this.keys, this.#parts.settlementKeyOf(request, reservation))
    const kept = 3 + this.texts.push(JSON.stringify(this.#charged(request, reservation)))
    const operation = idempotency === undefined ? operations.RESERVE : operations.RESERVE_ONCE
    return `[${operation},${cost}${text},${reservation.ttlMs},${marker},${kept}`
  }

  /** What settling needs to find the counts again, by the limits as they are now. */
  #charged(request: LimitRequest, { context, siblingKeys, settleMax, isOwn }: Reservation): SettlementText {
    const limits = request.limits.map((limit): SettlementLimit => {
      const key = this.#parts.keyOf(limit, request.scope)
      const kept = [limit.name, limit.capacity, key, this.#definition(limit, request)] as const
      if (countsInFlight(limit)) return [...kept, request.slots?.taken === undefined ? 2 : 1]
      if (limit.unit === 'requests' || (isOwn === true && isShared(limit))) return [...kept, 1]
      if (limit.unit === undefined) return kept
      return limit.hold === undefined ? [...kept, limit.unit] : [...kept, limit.unit, costOf(limit, request)]
    })
    const cost = hasCosts(request) ? request.cost : undefined
    const units = request.units && Object.fromEntries(request.units)
    return { about: context, limits, beside: siblingKeys, cost, units, settleMax, isOwn }
  }

  refund(kind: 'refund' | 'renew', request: LimitRequest, charge: Charge): string {
    const { reservation, units } = request
    // What is held is given back by its marker, which says when it was charged, and once.
    const isHeld = reservation !== undefined && units !== undefined
    const limits = isHeld ? request.limits : chargedLimits(request, charge)
    const cost = costText(request, limits, (limit) => costOf(limit, request))
    const atUs = isHeld ? 0 : charge.atUs
    let text = `[${kind === 'renew' ? operations.RENEW : operations.REFUND},${cost},${atUs}`
    if (reservation !== undefined) {
      text = `[${operations.VOID},${cost},${atUs},${positionOf(this.keys, this.#parts.settlementKeyOf(request, reservation))}`
    }
    for (const limit of limits) text += this.#limit(limit, request)
    return `${text}]`
  }

  #definition(limit: Limit, request: LimitRequest): string {
    const { span } = limit
    if (span.kind === 'period') {
      const text = periodText(limit, this.#parts.boundariesOf(limit, request))
      const holdMs = holdMsOf(limit, request)
      return holdMs === undefined ? text : `${text.slice(0, -1)},${holdMs}]`
    }
    const { slots } = request
    if (slots !== undefined && countsInFlight(limit)) return `${headText(limit)},${slots.ms}]`
    return windowText(limit, span.ms)
  }

  #limit(limit: Limit, request: LimitRequest): string {
    const text = this.#definition(limit, request)
    return `,${positionOf(this.limits, text)},${positionOf(this.keys, this.#parts.keyOf(limit, request.scope))}`
  }
}

/** One call for all operations, in their order. */
export function encodeCall(operations: readonly Operation[], parts: CallParts): ScriptCall {
  const writer = new CallWriter(parts)
  let body = ''
  for (const operation of operations) {
    const text =
      operation.kind === 'decide'
        ? writer.decide(operation.request)
        : writer.refund(operation.kind, operation.request, operation.charge)
    body += body === '' ? text : `,${text}`
  }
  const time = parts.nowMs === undefined ? '' : String(Math.round(parts.nowMs * 1_000))
  const argv = [time, `[${[...writer.limits.keys()].join(',')}]`, `[${body}]`, ...writer.texts] as const
  return { keys: [...writer.keys.keys()], argv }
}

/**
 * A request that the script found malformed, by the name in `malformed`, in lower case. That is a bug on this side,
 * except `definition`: two requests of the call name a key with different definitions of its limit, as a change of
 * policy brings; nothing was charged, and in another call it will be decided.
 */
export interface MalformedRequest {
  readonly malformed: string
}

/** The outcome of a refund or a renewal. */
export interface RefundOutcome {
  /** Redis's clock, in microseconds, if anything of it was refunded or renewed; else 0. */
  readonly refundedAtUs: number
}

/** How one operation of a call ended. */
export type Outcome = Decision | RefundOutcome | MalformedRequest

/** What decide.lua replied to a call. */
export interface ScriptReply {
  /** Redis's clock when it decided, in microseconds. */
  readonly nowUs: number
  /** Limits that started over although their span had not ended: a clock was set back, or a limit shortened. */
  readonly rebased: number
  /** One per operation, in their order. */
  readonly outcomes: readonly Outcome[]
}

const malformations = new Map<number, string>(
  Object.entries(malformed).map(([name, code]) => [code, name.toLowerCase()]),
)

const doubleBytes = 8
const idText = new TextDecoder()

/** Reads what the script packed: numbers in one string, and ids behind it. */
class ReplyReader {
  #at = 0
  #idAt = 1
  readonly #view: DataView
  readonly #parts: readonly unknown[]

  constructor(reply: unknown) {
    this.#parts = Array.isArray(reply) ? reply : [reply]
    const [numbers] = this.#parts
    if (!(numbers instanceof Uint8Array)) throw new Error(`decide.lua replied with ${typeof numbers} instead of bytes`)
    this.#view = new DataView(numbers.buffer, numbers.byteOffset, numbers.byteLength)
  }

  next(): number {
    const at = this.#at
    this.#at += doubleBytes
    if (this.#at > this.#view.byteLength) {
      throw new Error(`decide.lua replied with ${this.#view.byteLength / doubleBytes} numbers, expected more`)
    }
    return this.#view.getFloat64(at)
  }

  id(): string {
    const id = this.#parts[this.#idAt++]
    if (!(id instanceof Uint8Array)) throw new Error(`decide.lua replied with ${typeof id} instead of an id`)
    return idText.decode(id)
  }

  assertDone(): void {
    if (this.#at !== this.#view.byteLength || this.#idAt !== this.#parts.length) {
      throw new Error(
        `decide.lua replied with ${this.#view.byteLength / doubleBytes} numbers, expected ${this.#at / doubleBytes}`,
      )
    }
  }
}

function readOutcome(reader: ReplyReader, operation: Operation, atUs: number): Outcome {
  const status = reader.next()
  if (status < 0) {
    const why = malformations.get(status)
    if (why === undefined) throw new Error(`unknown status ${status} in the reply of decide.lua`)
    return { malformed: why }
  }
  if (operation.kind !== 'decide') return { refundedAtUs: status === statuses.ALLOWED ? atUs : 0 }
  const { request } = operation
  const isRepeat = status === statuses.REPLAYED
  const bits = reader.next()
  const repeats = isRepeat ? reader.id() : ''
  const waitMs = reader.next()
  const limits: LimitState[] = []
  for (const { name, capacity } of request.limits) {
    limits.push({ name, size: capacity, used: reader.next(), remaining: reader.next(), resetMs: reader.next() })
  }
  return decisionOf(request, { status, bits, waitMs, atUs, repeats, limits })
}

/** Reads the reply to a call of these very operations. Throws if it does not have exactly the expected length. */
export function decodeReply(reply: unknown, operations: readonly Operation[]): ScriptReply {
  const reader = new ReplyReader(reply)
  const nowUs = reader.next()
  const rebased = reader.next()
  const outcomes = operations.map((operation) => readOutcome(reader, operation, nowUs))
  reader.assertDone()
  return { nowUs, rebased, outcomes }
}
