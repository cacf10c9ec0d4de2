import ipaddr from 'ipaddr.js'

const rule = 'must be an address or a block of them such as 10.0.0.0/8 or fd00::/8'

export type ParsedCidr =
  /** `cidr` has its prefix always: `10.0.0.0/8`, `::1/128`. */
  { readonly kind: 'cidr'; readonly cidr: string } | { readonly kind: 'wrong'; readonly why: string }

/** Reads a CIDR; an address alone is the block of it alone. A block must begin at its first address. */
export function parseCidr(text: string): ParsedCidr {
  const [, written = '', prefixText] = /^([0-9a-fA-F:.]{2,45})(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const isIpv4 = ipaddr.IPv4.isValidFourPartDecimal(written)
  const plain = isIpv4 ? written : inHex(written)
  if (!isIpv4 && !ipaddr.IPv6.isValid(plain)) return { kind: 'wrong', why: rule }
  const family = isIpv4 ? ipaddr.IPv4 : ipaddr.IPv6
  const bits = isIpv4 ? 32 : 128
  const prefix = prefixText === undefined ? bits : Number(prefixText)
  if (prefix > bits) return { kind: 'wrong', why: `has a prefix of at most ${bits} bits` }
  if (family.networkAddressFromCIDR(`${plain}/${prefix}`).toString() !== family.parse(plain).toString()) {
    return { kind: 'wrong', why: `has bits beyond its prefix of ${prefix}: a block is named by its first address` }
  }
  if (!isIpv4 && ipaddr.IPv6.parse(plain).isIPv4MappedAddress()) {
    return { kind: 'wrong', why: 'is an IPv4 address in IPv6; write the IPv4 address, which is what callers have' }
  }
  return { kind: 'cidr', cidr: `${written.toLowerCase()}/${prefix}` }
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
