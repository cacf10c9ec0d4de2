import { decodeEscapes } from './decode-escapes.ts'

/** A request's path in the one form it is matched in and forwarded in, or why there is none. */
export type NormalizedPath =
  | { readonly kind: 'path'; readonly path: string }
  /** `why` is a sentence's end, for people: "the path …". */
  | { readonly kind: 'refused'; readonly why: string }

/** Of most paths nothing changes: letters, digits and marks, no empty segment, none that begins with a dot. */
const plainPath = /^\/(?:[\w~!$&'()*+,=:@-][\w.~!$&'()*+,=:@-]*\/)*(?:[\w~!$&'()*+,=:@-][\w.~!$&'()*+,=:@-]*)?$/

/**
 * What servers read differently, so that one path could be two: a limit would be asked for the one and the upstream
 * would serve the other. Looked for after unreserved characters are decoded, or `%25%32%46` would hide a `%252F`.
 */
const controls = /%(?:[01][0-9A-F]|7F)/i
const ambiguous: readonly (readonly [pattern: RegExp, why: string, mark?: string])[] = [
  [/^(?!\/)/, 'does not begin with a slash'],
  [/[^!-~]/, 'has a character that must be percent-encoded'],
  [/[?#]/, 'has a query or a fragment in it'],
  [/\\|%5C/i, 'has a backslash in it'],
  [/%2F/i, 'has an escaped slash (%2F) in it', '%2F'],
  [/;|%3B/i, 'has a path parameter (;) in it', ';'],
  [controls, 'has an escaped control character in it'],
  [/%25[0-9A-F]{2}/i, 'is escaped twice'],
]

/** Why a path is refused, with its needless escapes decoded; of `marks`, by `marked-path.ts`, nothing is said. */
export const differentlyRead = (path: string, marks: readonly string[] = []): string | undefined =>
  ambiguous.find(([pattern, , mark]) => !(mark !== undefined && marks.includes(mark)) && pattern.test(path))?.[1]

/** Looked for before anything is decoded: `%%34%31` would become an escape that the client did not write. */
export const brokenEscape = /%(?![0-9A-F]{2})/i

/**
 * The path (without its query) as RFC 3986 section 6.2.2 writes it: unreserved characters decoded, other escapes in
 * capitals, dot segments resolved (also `%2e`), and empty segments left out. What servers do not agree on is refused.
 * The result is its own normal form.
 */
export function normalizePath(raw: string): NormalizedPath {
  if (plainPath.test(raw)) return { kind: 'path', path: raw }
  if (brokenEscape.test(raw)) return { kind: 'refused', why: 'has a broken percent-escape' }
  const decoded = withoutNeedlessEscapes(raw)
  const why = differentlyRead(decoded)
  if (why !== undefined) return { kind: 'refused', why }
  if (!isUtf8(decoded)) return { kind: 'refused', why: 'has escapes that are not UTF-8' }
  return { kind: 'path', path: withoutDots(decoded) }
}

/** Decodes the escapes of unreserved characters, and writes the others in capitals. */
export const withoutNeedlessEscapes = (raw: string) =>
  raw.replaceAll(/%([0-9A-F]{2})/gi, (triple, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return /[\w.~-]/.test(character) ? character : triple.toUpperCase()
  })

/** Some readers end a text at NUL and a line at LF or CR; overlong UTF-8 is a dot or a slash to lax ones. */
const neverOdd = /%0[0AD]|%(?:C[01]|F[5-9A-F])|%E0%[89]|%F0%8/
/** Each doubles the readings. */
const oddSegmentsMax = 2

/** A path with control characters or bytes that are no UTF-8, which servers serve that have no text for them. */
export interface OddPath {
  /** As `normalizePath` writes a path, with the odd escapes in it. */
  readonly path: string
  /** What it may be to a reader that drops such characters, or takes them for others. None of them may be a route. */
  readonly readings: readonly string[]
}

/** Undefined where servers could read more than that differently. */
export function readOddPath(raw: string): OddPath | undefined {
  if (brokenEscape.test(raw)) return undefined
  const decoded = withoutNeedlessEscapes(raw)
  if (neverOdd.test(decoded) || ambiguous.some(([pattern]) => pattern !== controls && pattern.test(decoded)))
    return undefined
  const path = withoutDots(decoded)
  const segments = path.split('/')
  const odd: number[] = []
  for (const [at, segment] of segments.entries()) {
    if (!controls.test(segment) && isUtf8(segment)) continue
    // A decoder's exception takes microseconds, and a path may have thousands of segments.
    if (odd.length === oddSegmentsMax) return undefined
    odd.push(at)
  }
  const readings: string[] = []
  for (let bits = 0; bits < 2 ** odd.length; bits += 1) {
    const reading = segments.with(0, '')
    for (const [bit, at] of odd.entries()) reading[at] = bits & (1 << bit) ? withoutOdd(segments[at] ?? '') : 'x'
    const normal = normalizePath(reading.join('/') || '/')
    if (normal.kind === 'refused') return undefined
    readings.push(normal.path)
  }
  return { path, readings }
}

/** Bytes that are no UTF-8 are U+FFFD to a decoder. */
function withoutOdd(segment: string): string {
  const bytes = segment.replaceAll(/%([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  const text = new TextDecoder().decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)))
  return encodeURIComponent(text.replaceAll(/[\p{Cc}\uFFFD]/gu, ''))
}

/**
 * A normalized path as routes are compared with it: delimiters such as `$` or `:` that were escaped are not any more.
 * An upstream takes both for the same, whatever RFC 3986 says, so neither may be the cheaper one.
 */
export function pathToMatch(path: string): string {
  if (!path.includes('%')) return path
  return path.replaceAll(/%(?:2[146-9ABC]|3A|3D|40)/g, decodeURIComponent)
}

const escapeCharacter = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`

/** Whether the escapes of a text are UTF-8. */
export const isUtf8 = (escaped: string): boolean => decodeEscapes(escaped) !== undefined

/** Escapes what RFC 3986 has in no path. */
export const withEscapes = (path: string): string => path.replaceAll(/["<>[\]^`{|}]/g, escapeCharacter)

/** Escapes what RFC 3986 has in no path, resolves dot segments and leaves empty ones out. */
export function withoutDots(path: string): string {
  const kept: string[] = []
  const segments = withEscapes(path).split('/')
  for (const segment of segments) {
    if (segment === '..') kept.pop()
    else if (segment !== '' && segment !== '.') kept.push(segment)
  }
  const isFolder = /^\.{0,2}$/.test(segments.at(-1) ?? '')
  return kept.length === 0 ? '/' : `/${kept.join('/')}${isFolder ? '/' : ''}`
}
