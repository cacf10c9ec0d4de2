import ipaddr from 'ipaddr.js'
import { Temporal } from 'temporal-polyfill'

/** A duration as people write it, in milliseconds; undefined for anything else. One number and one unit. */
export function parseDurationMs(text: string): number | undefined {
  const match = /^(\d{1,15})(ms|s|m|h|d)$/.exec(text)
  const unitMs = unitsMs.get(match?.[2] ?? '')
  const ms = Number(match?.[1]) * (unitMs ?? Number.NaN)
  return Number.isSafeInteger(ms) && ms > 0 ? ms : undefined
}

/** Durations that `parseDurationMs` accepts: all that are a safe number of milliseconds, without zeros in front. */
export const durationPattern =
  '^([1-9][0-9]{0,14}ms|[1-9][0-9]{0,11}s|[1-9][0-9]{0,10}m|[1-9][0-9]{0,8}h|[1-9][0-9]{0,7}d)$'

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

/** The form that `parseName` accepts. */
export const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/** The form of names in words, for messages. */
export const nameRule =
  'a name of 1 to 64 letters, digits, dots, underscores or hyphens that begins with a letter or digit'

/**
 * Ids of subjects: as long as OpenID Connect lets a `sub` be. What begins with `_` or `ip:` is Weir's own: the
 * unauthenticated and the anonymous.
 */
export const parseSubjectId = (text: string): string | undefined => (subjectPattern.test(text) ? text : undefined)

/** The form that `parseSubjectId` accepts. */
export const subjectPattern = /^(?!_|ip:| )[\x20-\x7e]{0,254}[\x21-\x7e]$/

/** The form of ids of subjects in words, for messages. */
export const subjectRule =
  '1 to 255 printable ASCII characters, not beginning with `_` or `ip:`, nor with a space at either end'

/** A moment as RFC 3339 has it, with its offset, in milliseconds since the epoch. */
export function parseTimeMs(text: string): number | undefined {
  if (!timePattern.test(text)) return undefined
  try {
    return Temporal.Instant.from(text).epochMilliseconds
  } catch {
    return undefined
  }
}

/** The form that `parseTimeMs` accepts, for days that exist. */
export const timePattern =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/** The form of a time in words, for messages. */
export const timeRule = 'a time with a UTC offset, such as 2027-01-31T00:00:00Z'

/** SHA-256 in hex, lower case. */
export const parseSha256 = (text: string): string | undefined =>
  sha256Pattern.test(text) ? text.toLowerCase() : undefined

/** The form that `parseSha256` accepts. */
export const sha256Pattern = /^[0-9a-fA-F]{64}$/

/** `80%` as 80. */
export const parsePercent = (text: string): number | undefined =>
  percentPattern.test(text) ? Number.parseInt(text, 10) : undefined

/** The form that `parsePercent` accepts. */
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

/** A host name or IP address without a port, lower case, `*`, or `*.` and a name. */
export function parseHost(text: string): string | undefined {
  const host = text.toLowerCase()
  return hostPattern.test(host) ? host : undefined
}

/** The form that `parseHost` accepts. */
export const hostPattern =
  /^(?:\*|(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]{2,45}\])$/

/** What a cost that is read from the request looks like, for messages. */
export const costSourceRule = 'header:NAME, query:NAME or json:/pointer'

/** Longer pointers name nothing that someone sends to be counted. */
const pointerLengthMax = 256

/** Whether a text is a JSON pointer (RFC 6901) to something inside the body. */
export const isPointer = (text: string): boolean =>
  text.length <= pointerLengthMax && /^(?:\/(?:[^/~]|~[01])*)+$/.test(text)

/** As `isPointer` reads it, but for lengths and letters beyond ASCII, as JSON Schema has it. */
const pointerPattern = '(/([\\x21-.0-}]|~[01])*)+'

/** A part of a request that says how many units it consumes. */
export type CostSource =
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'query'; readonly name: string }
  /** JSON Pointer (RFC 6901) to an array, whose length counts, or to a whole number. */
  | { readonly kind: 'json'; readonly pointer: string }

/** The same as `parseCostSource` reads, but for lengths, as JSON Schema has it. */
export const costPattern = `^(header:[\\w!#$%&'*+.^\`|~-]{1,64}|query:[\\x21-\\x7e]{1,64}|json:${pointerPattern})$`

/** The same of what limits count by in bodies. */
export const bodyScopePattern = `^body:${pointerPattern}$`

/** `header:X-Cost`, `query:count`, `json:/domains`; undefined for anything else. Header names lose their case. */
export function parseCostSource(text: string): CostSource | undefined {
  const [, kind, name = ''] = /^(header|query|json):([\x21-\x7e]+)$/.exec(text) ?? []
  if (kind === 'header') {
    return /^[\w!#$%&'*+.^`|~-]{1,64}$/.test(name) ? { kind, name: name.toLowerCase() } : undefined
  }
  if (kind === 'query') return name.length <= 64 ? { kind, name } : undefined
  return kind === 'json' && isPointer(name) ? { kind, pointer: name } : undefined
}

const cidrRule = 'must be an address or a network such as 10.0.0.0/8 or fd00::/8'

type ParsedCidr =
  /** `cidr` has its prefix always: `10.0.0.0/8`, `::1/128`. */
  { readonly kind: 'cidr'; readonly cidr: string } | { readonly kind: 'wrong'; readonly why: string }

/** Reads a CIDR; an address alone is the block of it alone. A block must begin at its first address. */
export function parseCidr(text: string): ParsedCidr {
  const [, written = '', prefixText] = /^([0-9a-fA-F:.]{2,45})(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const isIpv4 = ipaddr.IPv4.isValidFourPartDecimal(written)
  const plain = isIpv4 ? written : inHex(written)
  if (!isIpv4 && !ipaddr.IPv6.isValid(plain)) return { kind: 'wrong', why: cidrRule }
  const family = isIpv4 ? ipaddr.IPv4 : ipaddr.IPv6
  const bits = isIpv4 ? 32 : 128
  const prefix = prefixText === undefined ? bits : Number(prefixText)
  if (prefix > bits) return { kind: 'wrong', why: `must have a prefix of at most ${bits} bits` }
  if (family.networkAddressFromCIDR(`${plain}/${prefix}`).toString() !== family.parse(plain).toString()) {
    return { kind: 'wrong', why: `has bits set beyond its prefix of ${prefix}: write the first address of the network` }
  }
  if (!isIpv4 && ipaddr.IPv6.parse(plain).isIPv4MappedAddress()) {
    return { kind: 'wrong', why: 'is an IPv4 address in IPv6 form; write the IPv4 address' }
  }
  return { kind: 'cidr', cidr: `${written.toLowerCase()}/${prefix}` }
}

/** Whether a network, with its prefix or as one address, has all of an address or network. */
export function networkContains(network: string, inner: string): boolean {
  const [outer, found] = [network, inner].map(parseCidr)
  if (outer?.kind !== 'cidr' || found?.kind !== 'cidr') return false
  const [[base, prefix], [address, length]] = [ipaddr.parseCIDR(outer.cidr), ipaddr.parseCIDR(found.cidr)]
  return base.kind() === address.kind() && length >= prefix && address.match(base, prefix)
}

/**
 * An IPv6 address with an IPv4 address at its end, all in hex; empty if that is none. ipaddr.js reads `::1.2.3.4` as
 * the mapped `::ffff:1.2.3.4`, and takes `010.0.0.1`, on which Node's BlockList throws.
 */
function inHex(text: string): string {
  const [, head = '', dotted] = /^(.*:)([\d.]*\.[\d.]*)$/.exec(text) ?? []
  if (dotted === undefined) return text
  if (!ipaddr.IPv4.isValidFourPartDecimal(dotted)) return ''
  const [a = 0, b = 0, c = 0, d = 0] = ipaddr.IPv4.parse(dotted).octets
  return `${head}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}
