import { Temporal } from 'temporal-polyfill'

/** A duration as people write it, in milliseconds; undefined for anything else. One number and one unit. */
export function parseDurationMs(text: string): number | undefined {
  const match = /^(\d{1,15})(ms|s|m|h|d)$/.exec(text)
  const unitMs = unitsMs.get(match?.[2] ?? '')
  const ms = Number(match?.[1]) * (unitMs ?? Number.NaN)
  return Number.isSafeInteger(ms) && ms > 0 ? ms : undefined
}

const unitsMs: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/**
 * Names of plans, limits, upstreams, endpoints and keys. Printable ASCII, since they stand in headers and Redis keys.
 */
export const parseName = (text: string): string | undefined => (namePattern.test(text) ? text : undefined)

export const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

export const nameRule =
  'a name of 1 to 64 letters, digits, dots, underscores or hyphens that begins with a letter or digit'

/** Ids of subjects. What begins with `_` or `ip:` is Weir's own: the unauthenticated and the anonymous. */
export const parseSubjectId = (text: string): string | undefined => (subjectPattern.test(text) ? text : undefined)

export const subjectPattern = /^(?!_|ip:)[\x21-\x7e]{1,128}$/

export const subjectRule = '1 to 128 printable ASCII characters without spaces, not beginning with `_` or `ip:`'

export const timeZonePattern = /^[A-Za-z][A-Za-z0-9_+/-]{1,63}$/

/**
 * An IANA time zone such as `Asia/Kathmandu`, as written. Offsets are refused: a billing day follows its zone's law.
 */
export function parseTimeZone(text: string): string | undefined {
  if (!timeZonePattern.test(text)) return undefined
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(text) && text
  } catch {
    return undefined
  }
}

/** A moment as RFC 3339 has it, with its offset, in milliseconds since the epoch. */
export function parseTimeMs(text: string): number | undefined {
  if (!timePattern.test(text)) return undefined
  try {
    return Temporal.Instant.from(text).epochMilliseconds
  } catch {
    return undefined
  }
}

export const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/

export const timeRule = 'a time with its offset such as 2027-01-31T00:00:00Z'

/** SHA-256 in hex, lower case. */
export const parseSha256 = (text: string): string | undefined =>
  sha256Pattern.test(text) ? text.toLowerCase() : undefined

export const sha256Pattern = /^[0-9a-fA-F]{64}$/

/** `80%` as 80. */
export function parsePercent(text: string): number | undefined {
  return percentPattern.test(text) ? Number.parseInt(text, 10) : undefined
}

export const percentPattern = /^(?:0{0,2}[1-9]|0?[1-9]\d|100)%$/

/** The name of an environment variable. */
export const variablePattern = /^[A-Z_][A-Z0-9_]{0,127}$/

/** An http or https URL, as written by `URL`; undefined with credentials or a fragment in it. */
export function parseHttpUrl(text: string): URL | undefined {
  if (text.length > 2_048 || !/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined
  const url = new URL(text)
  return url.username === '' && url.password === '' && url.hash === '' ? url : undefined
}

/** As much of `parseHttpUrl` as a pattern can say. */
export const urlSchema = { maxLength: 2_048, pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/@?#\\s]+[^#\\s]*$' }

/** Scheme, host and port, for an upstream that gets the request's own path. */
export function parseOrigin(text: string): string | undefined {
  const url = parseHttpUrl(text)
  return url !== undefined && url.pathname === '/' && url.search === '' ? url.origin : undefined
}

/** A host name or IP address without a port, lower case, or `*`. */
export function parseHost(text: string): string | undefined {
  const host = text.toLowerCase()
  return hostPattern.test(host) ? host : undefined
}

export const hostPattern = /^(?:\*|[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]{2,45}\])$/
