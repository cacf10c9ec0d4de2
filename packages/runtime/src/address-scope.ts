import { isIPv4, isIPv6 } from 'node:net'

/**
 * Returns the address that a caller is limited and metered by: an IPv4 address as it is, of an IPv6 address the network
 * of `prefix` bits (32 to 64), because a single customer holds 2^64 addresses of a /64. IPv4 inside IPv6
 * (`::ffff:1.2.3.4`, and `64:ff9b::1.2.3.4` of NAT64) is IPv4. Empty for any other text.
 */
export function addressScope(text: string, prefix: number): string {
  if (isIPv4(text)) return text
  if (!isIPv6(text)) return ''
  const groups = ipv6Groups(text)
  const mapped = mappedIpv4(groups) ?? translatedIpv4(groups)
  if (mapped !== undefined) return mapped
  const network = groups.slice(0, 4).map((group, at) => group & (0xffff << (16 - bitsOf(prefix, at))))
  // The zeros at the end are the longest run, so that they are what RFC 5952 shortens.
  let length = 4
  while (length > 0 && network[length - 1] === 0) length -= 1
  const written = network.slice(0, length).map((group) => group.toString(16))
  return `${written.join(':')}::/${prefix}`
}

/** As `addressScope`, of a text that may be such a network already. */
export function networkScope(text: string, prefix: number): string {
  const end = `/${prefix}`
  return addressScope(text.endsWith(`::${end}`) ? text.slice(0, -end.length) : text, prefix)
}

/** How many bits of a group are of the network. */
const bitsOf = (prefix: number, group: number) => Math.max(0, Math.min(16, prefix - 16 * group))

/**
 * Returns an address without its zone, and IPv4 inside IPv6 as IPv4; empty for any other text. For comparing with
 * networks.
 */
export function plainAddress(text: string): string {
  if (isIPv4(text)) return text
  if (!isIPv6(text)) return ''
  return mappedIpv4(ipv6Groups(text)) ?? withoutZone(text)
}

function withoutZone(text: string): string {
  const zone = text.indexOf('%')
  return zone === -1 ? text : text.slice(0, zone)
}

/**
 * Returns the eight groups of a text that `isIPv6` accepts. Written out because a library needs ten times as long, on
 * every hop.
 */
export function ipv6Groups(text: string): readonly number[] {
  const [head = '', tail] = withoutZone(text).split('::')
  const first = readGroups(head)
  if (tail === undefined) return first
  const last = readGroups(tail)
  return [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last]
}

function readGroups(text: string): number[] {
  const groups: number[] = []
  if (text === '') return groups
  for (const part of text.split(':')) {
    if (!part.includes('.')) {
      groups.push(Number.parseInt(part, 16))
      continue
    }
    const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number)
    groups.push(a * 256 + b, c * 256 + d)
  }
  return groups
}

function mappedIpv4(groups: readonly number[]): string | undefined {
  const [a, b, c, d, e, f] = groups
  return f === 0xffff && a === 0 && b === 0 && c === 0 && d === 0 && e === 0 ? lastAsIpv4(groups) : undefined
}

/** Returns the address that NAT64 translated, by RFC 6052: its callers share one /96, and would be one address. */
function translatedIpv4(groups: readonly number[]): string | undefined {
  const [a, b, c, d, e, f] = groups
  return a === 0x64 && b === 0xff9b && c === 0 && d === 0 && e === 0 && f === 0 ? lastAsIpv4(groups) : undefined
}

const lastAsIpv4 = ([, , , , , , high = 0, low = 0]: readonly number[]): string =>
  `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
