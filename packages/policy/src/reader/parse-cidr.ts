import ipaddr from 'ipaddr.js'

const rule = 'must be an address or a block of them such as 10.0.0.0/8 or fd00::/8'

export type ParsedCidr =
  /** `cidr` has its prefix always: `10.0.0.0/8`, `::1/128`. */
  { readonly kind: 'cidr'; readonly cidr: string } | { readonly kind: 'wrong'; readonly why: string }

/** Reads a CIDR; an address alone is the block of it alone. A block must begin at its first address. */
export function parseCidr(text: string): ParsedCidr {
  const [, written = '', prefixText] = /^([0-9a-fA-F:.]{2,45})(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const isIpv4 = ipaddr.IPv4.isValidFourPartDecimal(written)
  if (!isIpv4 && !ipaddr.IPv6.isValid(written)) return { kind: 'wrong', why: rule }
  const family = isIpv4 ? ipaddr.IPv4 : ipaddr.IPv6
  const bits = isIpv4 ? 32 : 128
  const prefix = prefixText === undefined ? bits : Number(prefixText)
  if (prefix > bits) return { kind: 'wrong', why: `has a prefix of at most ${bits} bits` }
  const cidr = `${written.toLowerCase()}/${prefix}`
  if (family.networkAddressFromCIDR(cidr).toString() !== family.parse(written).toString()) {
    return { kind: 'wrong', why: `has bits beyond its prefix of ${prefix}: a block is named by its first address` }
  }
  if (!isIpv4 && ipaddr.IPv6.parse(written).isIPv4MappedAddress()) {
    return { kind: 'wrong', why: 'is an IPv4 address in IPv6; write the IPv4 address, which is what callers have' }
  }
  return { kind: 'cidr', cidr }
}
