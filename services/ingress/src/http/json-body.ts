import { JsonPick } from '@weir/meters/json-pick.ts'
import { preparePatterns, stepsOf } from '@weir/meters/patterns.ts'

/** The longest body that is read before a decision. */
export const readBodyBytesMax = 65_536

/** Refuses what is no UTF-8 and keeps a byte order mark, which is no JSON. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A JSON text with its value. */
export interface JsonBody {
  readonly bytes: Buffer
  readonly value: unknown
}

/** Undefined for what is no JSON. */
export function parseJson(body: Buffer): JsonBody | undefined {
  try {
    return { bytes: body, value: JSON.parse(utf8.decode(body)) }
  } catch {
    return undefined
  }
}

/** The value at `pointer`; undefined for none. */
export const valueAt = (value: unknown, pointer: string): unknown => stepsOf(pointer).reduce(memberOf, value)

/** What finds the members on the way to a pointer; pointers are a policy's, so there are few. */
const ways = new Map<string, JsonPick>()
const waysMax = 1_000

/**
 * Whether members on the way to `pointer` are there twice, or differ in their spelling only: readers differ in which of
 * them they take. So is what is nested too deeply.
 */
export function isAmbiguousAt({ bytes }: JsonBody, pointer: string): boolean {
  if (ways.size >= waysMax) ways.clear()
  const way =
    ways.get(pointer) ??
    new JsonPick(
      preparePatterns([pointer], () => false),
      () => undefined,
    )
  ways.set(pointer, way)
  way.reset()
  return !way.write(bytes) || way.isAmbiguous[0] === true
}

function memberOf(value: unknown, step: string): unknown {
  if (Array.isArray(value)) return /^(?:0|[1-9]\d*)$/.test(step) ? value[Number(step)] : undefined
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
  return Reflect.get(value, step)
}
