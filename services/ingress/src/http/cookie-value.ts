import { decodeEscapes } from '@weir/core/http/decode-escapes.ts'

/** A name as the laxest servers read it: `Phone`, ` phone` and `phone[]` are `phone`, `a.b` is `a_b` (PHP, ASP.NET). */
export const laxName = (name: string): string =>
  name
    .replace(/[[\0].*/s, '')
    .trim()
    .toLowerCase()
    .replace(/[ .]/g, '_')

/**
 * The value of the cookie with this name; undefined without one, and with two by any server's reading: Express, Go and
 * PHP take the first, Django the last, and Python's own reader separates at spaces too. Quotes and escapes are undone,
 * because many readers do so: otherwise one session could be written in many ways.
 */
export function cookieValue(header: string, name: string): string | undefined {
  const lax = laxName(name)
  const named = header
    .replace(/\s*=\s*/g, '=')
    .split(/[;,\s]+/)
    .map((pair) => [pair, pair.indexOf('=')] as const)
    .filter(([pair, equals]) => equals !== -1 && laxName(pair.slice(0, equals)) === lax)
  const [[pair, equals] = ['', -1], second] = named
  if (second !== undefined || pair.slice(0, equals) !== name) return undefined
  const value = pair.slice(equals + 1)
  const bare = value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value
  // What is no escaped text its readers take as it is.
  return bare.includes('%') ? (decodeEscapes(bare) ?? bare) : bare
}
