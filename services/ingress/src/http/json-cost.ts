import { costMax } from '@weir/core/limits/limit-store.ts'
import type { Problem } from '@weir/runtime/problem.ts'
import { costUnreadable } from './read-cost.ts'
import { isAmbiguousOn } from './repeated-members.ts'

/** The longest body that is read for its cost. */
export const costBodyBytesMax = 65_536

/** Refuses what is no UTF-8 and keeps a byte order mark, which is no JSON. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

const notJson = Symbol('not JSON')

/**
 * What a JSON body says a request costs: the length of the array at `pointer` (RFC 6901), at least 1, or the whole
 * number there. Members on the way that are there twice, or differ in their capitals only, are refused, because readers
 * differ in which of them they take.
 */
export function jsonCost(body: Buffer, pointer: string): number | Problem {
  const where = `This route's cost is at ${JSON.stringify(pointer)} of its JSON body`
  const text = decode(body)
  const value = text === undefined ? notJson : parse(text)
  if (text === undefined || value === notJson) return costUnreadable(`${where}, and the body is no JSON.`)
  const steps = pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
  if (isAmbiguousOn(text, steps)) return costUnreadable(`${where}, and a member on the way is there more than once.`)
  const found = steps.reduce(memberOf, value)
  if (Array.isArray(found)) return Math.max(1, found.length)
  if (typeof found === 'number' && Number.isInteger(found) && found >= 0 && found <= costMax) return found
  return costUnreadable(`${where}, where there must be an array or a whole number from 0 to ${costMax}.`)
}

/** A body with another encoding could be read by nobody but the upstream. */
export const encodedBody = costUnreadable(
  "This route's cost is in its body, which must come without Content-Encoding.",
  415,
)
export const longBody = costUnreadable(
  `This route's cost is in its body, which must not exceed ${costBodyBytesMax} bytes.`,
  413,
)

function decode(body: Buffer): string | undefined {
  try {
    return utf8.decode(body)
  } catch {
    return undefined
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return notJson
  }
}

function memberOf(value: unknown, step: string): unknown {
  if (Array.isArray(value)) return /^(?:0|[1-9]\d*)$/.test(step) ? value[Number(step)] : undefined
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
  return Reflect.get(value, step)
}
