import { laxCharacter, laxName } from '@weir/core/http/lax-name.ts'
import { stepsOf } from '@weir/meters/patterns.ts'

/** The longest body that is read before a decision. */
export const readBodyBytesMax = 65_536

/** Refuses what is no UTF-8 and keeps a byte order mark, which is no JSON. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A JSON text with its value. */
export interface JsonBody {
  readonly text: string
  readonly value: unknown
}

/** Undefined for what is no JSON. */
export function parseJson(body: Buffer): JsonBody | undefined {
  try {
    const text = utf8.decode(body)
    return { text, value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

/** The value at `pointer`; undefined for none. */
export const valueAt = (value: unknown, pointer: string): unknown => stepsOf(pointer).reduce(memberOf, value)

/**
 * Whether members on the way to `pointer` are there twice, or differ in their capitals only: readers differ in which of
 * them they take.
 */
export const isAmbiguousAt = ({ text }: JsonBody, pointer: string): boolean => isAmbiguousOn(text, stepsOf(pointer))

function memberOf(value: unknown, step: string): unknown {
  if (Array.isArray(value)) return /^(?:0|[1-9]\d*)$/.test(step) ? value[Number(step)] : undefined
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
  return Reflect.get(value, step)
}

/**
 * Whether an object on the way of `steps` (member names and array indexes) through a JSON text has the next member more
 * than once; names are equal if any reader reads them so. JSON.parse keeps the last of them without an error, other
 * readers keep the first. `text` is valid JSON. It is walked once, without recursion.
 */
function isAmbiguousOn(text: string, steps: readonly string[]): boolean {
  const names = steps.map(laxName)
  /** The open containers on the way: the position of the next item in an array, -1 in an object. */
  const way: { item: number; hasFound: boolean }[] = []
  let depth = 0
  /** Whether the next value is on the way, and whether the next string in an object is a member's name. */
  let isOnWay = true
  let isName = false
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    const inner = way.length === depth ? way.at(-1) : undefined
    if (character === '"') {
      const end = endOfString(text, at)
      if (isName && inner?.item === -1) {
        const written = text.slice(at + 1, end - 1)
        isOnWay = isNamed(written.includes('\\') ? JSON.parse(`"${written}"`) : written, names[depth - 1])
        if (isOnWay && inner.hasFound) return true
        inner.hasFound ||= isOnWay
      }
      isName = false
      at = end - 1
    } else if (character === '{' || character === '[') {
      if (isOnWay) way.push({ item: character === '[' ? 0 : -1, hasFound: false })
      depth += 1
      isOnWay &&= character === '[' && steps[depth - 1] === '0'
      isName = character === '{'
    } else if (character === '}' || character === ']') {
      if (inner !== undefined) way.pop()
      depth -= 1
      isOnWay = false
    } else if (character === ',') {
      if (inner !== undefined && inner.item >= 0) inner.item += 1
      isOnWay = inner !== undefined && inner.item > 0 && String(inner.item) === steps[depth - 1]
      isName = true
    }
  }
  return false
}

function endOfString(text: string, quote: number): number {
  let at = quote + 1
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

/** Whether `laxName(member)` is `name`. It ends at the first difference, because a body may have 10,000 members. */
function isNamed(member: string, name: string | undefined): boolean {
  if (name === undefined || /^[\w-]*$/.test(member)) return member.toLowerCase() === name
  let matched = 0
  for (const character of member) {
    if (character === '\0') break
    const lax = laxCharacter(character)
    if (!name.startsWith(lax, matched)) return false
    matched += lax.length
  }
  return matched === name.length
}
