/**
 * The name of a member or a parameter as the laxest reader has it: Go reads `ſ` as S and the Kelvin sign as K, some end
 * a name at NUL, some drop control characters and halves of surrogate pairs.
 */
export function laxName(name: string): string {
  if (/^[\w-]*$/.test(name)) return name.toLowerCase()
  const [begin = ''] = name.split('\0', 1)
  return Array.from(begin, laxCharacter).join('')
}

/** Empty for those that are dropped. */
const laxCharacter = (character: string): string =>
  /\p{C}/u.test(character) ? '' : character.toUpperCase().toLowerCase()

/**
 * Whether `laxName(member)` is `name`. It ends at the first difference and builds no string for ASCII, because a body
 * of 64 kB may have 10,000 members.
 */
function isNamed(member: string, name: string): boolean {
  let matched = 0
  for (let at = 0; at < member.length; at += 1) {
    const code = member.charCodeAt(at)
    if (code === 0) break
    if (code < 128) {
      if (code < 32 || code === 127) continue
      if (name.charCodeAt(matched) !== (code >= 65 && code <= 90 ? code + 32 : code)) return false
      matched += 1
      continue
    }
    const character = String.fromCodePoint(member.codePointAt(at) ?? code)
    const lax = laxCharacter(character)
    if (!name.startsWith(lax, matched)) return false
    matched += lax.length
    at += character.length - 1
  }
  return matched === name.length
}

/**
 * Whether an object on the way of `steps` (member names and array indexes) through a JSON text has the next member more
 * than once; names are equal if any reader reads them so. JSON.parse keeps the last of them without an error, other
 * readers keep the first. `text` is valid JSON. It is walked once, without recursion.
 */
export function isAmbiguousOn(text: string, steps: readonly string[]): boolean {
  let at = skipBlanks(text, 0)
  for (const step of steps) {
    const first = text[at]
    if (first !== '{' && first !== '[') return false
    const found = first === '{' ? findMember(text, at, laxName(step)) : findItem(text, at, step)
    if (found === 'twice') return true
    if (found === undefined) return false
    at = found
  }
  return false
}

/** Where the value of the member begins, whose name is `name` to the laxest reader. */
function findMember(text: string, open: number, name: string): number | 'twice' | undefined {
  let found: number | undefined
  let at = skipBlanks(text, open + 1)
  while (text[at] === '"') {
    const end = skipString(text, at)
    const written = text.slice(at + 1, end - 1)
    const member: unknown = written.includes('\\') ? JSON.parse(`"${written}"`) : written
    const valueAt = skipBlanks(text, skipBlanks(text, end) + 1)
    if (typeof member === 'string' && isNamed(member, name)) {
      if (found !== undefined) return 'twice'
      found = valueAt
    }
    at = afterComma(text, skipValue(text, valueAt))
  }
  return found
}

function findItem(text: string, open: number, step: string): number | undefined {
  let at = skipBlanks(text, open + 1)
  for (let index = 0; text[at] !== ']' && at < text.length; index += 1) {
    if (String(index) === step) return at
    at = afterComma(text, skipValue(text, at))
  }
  return undefined
}

function afterComma(text: string, end: number): number {
  const at = skipBlanks(text, end)
  return text[at] === ',' ? skipBlanks(text, at + 1) : at
}

function skipBlanks(text: string, from: number): number {
  let at = from
  while (at < text.length && ' \t\r\n'.includes(text[at] ?? '')) at += 1
  return at
}

function skipString(text: string, quote: number): number {
  let at = quote + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

function skipValue(text: string, from: number): number {
  let at = from
  let depth = 0
  while (at < text.length) {
    const character = text[at] ?? ''
    if (character === '"') {
      at = skipString(text, at)
      if (depth === 0) return at
      continue
    }
    if (character === '{' || character === '[') depth += 1
    if (character === '}' || character === ']') {
      depth -= 1
      // The end of what the value stands in, or of the value.
      if (depth < 0) return at
      if (depth === 0) return at + 1
    }
    if (depth === 0 && character === ',') return at
    at += 1
  }
  return at
}
