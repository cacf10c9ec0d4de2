import type { Decision, LimitState } from './decision.ts'
import type { Limit, PeriodBoundaries } from './limit.ts'
import type { LimitRequest, ScopeValues } from './limit-store.ts'
import { decisionOf } from './verdict.ts'

/**
 * The wire format of lua/scripts/decide.lua, whose header is its only description. ioredis's decoder rounds integers within
 * 48 of 2^53, so counts up there are enforced exactly but may be reported one off.
 */

/** A call never takes more requests, so that one script run stays well below a millisecond. Also checked in the script. */
export const requestsPerCallMax = 32

export interface ScriptCall {
  readonly keys: readonly string[]
  /** Time, limits, requests. */
  readonly argv: readonly [string, string, string]
}

/** What a request's limits come to beyond the request itself. */
export interface CallParts {
  keyOf(limit: Limit, scope: ScopeValues): string
  boundariesOf(limit: Limit, request: LimitRequest): PeriodBoundaries | undefined
  /** The test's time; undefined for Redis's own clock. */
  readonly nowMs: number | undefined
}

/** Texts of limits without a calendar never change, and are the same for every request. */
const windowTexts = new WeakMap<Limit, string>()
const periodTexts = new WeakMap<Limit, WeakMap<PeriodBoundaries, string>>()

function windowText(limit: Limit, ms: number): string {
  const known = windowTexts.get(limit)
  if (known !== undefined) return known
  const text = `["${limit.algorithm}",${limit.mode === 'enforce' ? 0 : 1},${limit.size},${ms}]`
  windowTexts.set(limit, text)
  return text
}

function periodText(limit: Limit, boundaries: PeriodBoundaries | undefined): string {
  if (boundaries === undefined) throw new Error(`limit ${limit.name} has a calendar period but no boundaries`)
  const texts = periodTexts.get(limit) ?? new WeakMap<PeriodBoundaries, string>()
  const known = texts.get(boundaries)
  if (known !== undefined) return known
  periodTexts.set(limit, texts)
  const text = `["${limit.algorithm}",${limit.mode === 'enforce' ? 0 : 1},${limit.size},0,${boundaries.join(',')}]`
  texts.set(boundaries, text)
  return text
}

/** Positions from 1, in order of first use. */
function positionOf(positions: Map<string, number>, text: string): number {
  const known = positions.get(text)
  if (known !== undefined) return known
  const position = positions.size + 1
  positions.set(text, position)
  return position
}

/** One call for all requests, in their order. Each key and each limit is sent once, however many requests name it. */
export function encodeCall(requests: readonly LimitRequest[], parts: CallParts): ScriptCall {
  const keys = new Map<string, number>()
  const limits = new Map<string, number>()
  let body = ''
  for (const request of requests) {
    body += `${body === '' ? '[' : ',['}${request.peek ? 1 : 0},${request.cost}`
    for (const limit of request.limits) {
      const text =
        limit.span.kind === 'window'
          ? windowText(limit, limit.span.ms)
          : periodText(limit, parts.boundariesOf(limit, request))
      body += `,${positionOf(limits, text)},${positionOf(keys, parts.keyOf(limit, request.scope))}`
    }
    body += ']'
  }
  const time = parts.nowMs === undefined ? '' : String(Math.round(parts.nowMs * 1_000))
  return { keys: [...keys.keys()], argv: [time, `[${[...limits.keys()].join(',')}]`, `[${body}]`] }
}

/** A request that the script found malformed; the codes are those of decide.lua. Always a bug on this side. */
export interface MalformedRequest {
  readonly malformed: 'shape' | 'cost' | 'limit' | 'key' | 'planning'
}

export interface ScriptReply {
  /** Redis's clock when it decided, in microseconds. */
  readonly nowUs: number
  /** Limits begun anew although their span had not ended: a clock was set back, or a limit shortened. */
  readonly rebased: number
  /** One per request, in their order. */
  readonly outcomes: readonly (Decision | MalformedRequest)[]
}

const malformations = [undefined, 'shape', 'cost', 'limit', 'key', 'planning'] as const

class ReplyReader {
  #at = 0
  readonly #reply: readonly unknown[]

  constructor(reply: unknown) {
    if (!Array.isArray(reply)) throw new Error(`decide.lua replied with ${typeof reply} instead of integers`)
    this.#reply = reply
  }

  next(): number {
    const value = this.#reply[this.#at++]
    if (typeof value !== 'number') {
      throw new Error(`decide.lua replied with ${typeof value} at ${this.#at} of ${this.#reply.length} integers`)
    }
    return value
  }

  assertDone(): void {
    if (this.#at !== this.#reply.length) {
      throw new Error(`decide.lua replied with ${this.#reply.length} integers, expected ${this.#at}`)
    }
  }
}

function readOutcome(reader: ReplyReader, request: LimitRequest): Decision | MalformedRequest {
  const verdict = reader.next()
  if (verdict < 0) {
    const malformed = malformations[-verdict]
    if (malformed === undefined) throw new Error(`unknown verdict ${verdict} in the reply of decide.lua`)
    return { malformed }
  }
  const refusedBits = reader.next()
  const waitMs = reader.next()
  const limits: LimitState[] = []
  for (const { name, size } of request.limits) {
    limits.push({ name, size, used: reader.next(), remaining: reader.next(), resetMs: reader.next() })
  }
  return decisionOf(request, { verdict, refusedBits, waitMs, limits })
}

/** Reads the reply to a call of these very requests. Throws when it does not have exactly the length that they ask for. */
export function decodeReply(reply: unknown, requests: readonly LimitRequest[]): ScriptReply {
  const reader = new ReplyReader(reply)
  const nowUs = reader.next()
  const rebased = reader.next()
  const outcomes = requests.map((request) => readOutcome(reader, request))
  reader.assertDone()
  return { nowUs, rebased, outcomes }
}
