import { costMax } from '@weir/core/limits/limit-store.ts'
import type { Problem } from '@weir/runtime/problem.ts'
import { isAmbiguousAt, type JsonBody, readBodyBytesMax, valueAt } from './json-body.ts'
import { costUnreadable } from './read-cost.ts'

/**
 * What a JSON body says a request costs: the length of the array at `pointer` (RFC 6901), at least 1, or the whole
 * number there. A body that can be read in several ways is refused.
 */
export function jsonCost(body: JsonBody | undefined, pointer: string): number | Problem {
  const where = `This route's cost is at ${JSON.stringify(pointer)} in the JSON body`
  if (body === undefined) return costUnreadable(`${where}, but the body is not JSON.`)
  if (isAmbiguousAt(body, pointer)) {
    return costUnreadable(`${where}, but a member on this path occurs more than once.`)
  }
  const found = valueAt(body.value, pointer)
  if (Array.isArray(found)) return Math.max(1, found.length)
  if (typeof found === 'number' && Number.isInteger(found) && found >= 0 && found <= costMax) return found
  return costUnreadable(`${where}, but the value there is not an array or a whole number from 0 to ${costMax}.`)
}

const inBody = "This route's cost is in the request body"

/** The problems of a body whose cost only the upstream could read. */
export const costBodyProblems = {
  encoded: costUnreadable(`${inBody}, which must not have a Content-Encoding.`, 415),
  long: costUnreadable(`${inBody}, which must not exceed ${readBodyBytesMax} bytes.`, 413),
}
