import { costMax } from '@weir/core/limits/limit-store.ts'
import type { Problem } from '@weir/runtime/problem.ts'
import { costUnreadable, laxCharacter, laxName } from './read-cost.ts'

/** The longest body that is read for its cost. */
export const costBodyBytesMax = 65_536

/** Refuses what is no UTF-8 and keeps a byte order mark, which is no JSON. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * What a JSON body says a request costs: the length of the array at `pointer` (RFC 6901), at least 1, or the whole
 * number there. Members on the way that are there twice, or differ in their capitals only, are refused, because readers
 * differ in which of them they take.
 */
export function jsonCost(body: Buffer, pointer: string): number | Problem {
  const where = `This route's cost is at ${JSON.stringify(pointer)} of its JSON body`
  const json = parse(body)
  if (json === undefined) return costUnreadable(`${where}, and the body is no JSON.`)
  const steps = pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
  if (isAmbiguousOn(json.text, steps))
    return costUnreadable(`${where}, and a member on the way is there more than once.`)
  const found = steps.reduce(memberOf, json.value)
  if (Array.isArray(found)) return Math.max(1, found.length)
  if (typeof found === 'number' && Number.isInteger(found) && found >= 0 && found <= costMax) return found
  return costUnreadable(`${where}, where there must be an array or a whole number from 0 to ${costMax}.`)
}

/** The problem of a compressed body, which only the upstream could read. */
export const encodedBody = costUnreadable(
  "This route's cost is in its body, which must come without Content-Encoding.",
  415,
)
/** The problem of a longer body. */
export const longBody = costUnreadable(
  `This route's cost is in its body, which must not exceed ${costBodyBytesMax} bytes.`,
  413,
)

function parse(body: Buffer): { readonly text: string; readonly value: unknown } | undefined {
  try {
    const text = utf8.decode(body)
    return { text, value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

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
