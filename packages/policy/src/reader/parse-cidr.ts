/** A block of addresses with the bits of its first one. */
interface Address {
  readonly bits: bigint
  readonly length: 32 | 128
  readonly text: string
}

export type ParsedCidr =
  /** `cidr` has its prefix always: `10.0.0.0/8`, `::1/128`. */
  { readonly kind: 'cidr'; readonly cidr: string } | { readonly kind: 'wrong'; readonly why: string }

const rule = 'must be an address or a block of them such as 10.0.0.0/8 or fd00::/8'

/** Reads a CIDR; an address alone is the block of it alone. A block that does not begin at its first address is a slip. */
export function parseCidr(text: string): ParsedCidr {
  const [, addressText = '', prefixText] = /^([0-9a-fA-F:.]{2,45})(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const address = parseIpv4(addressText) ?? parseIpv6(addressText)
  if (address === undefined) return { kind: 'wrong', why: rule }
  const prefix = prefixText === undefined ? address.length : Number(prefixText)
  if (prefix > address.length) return { kind: 'wrong', why: `has a prefix of at most ${address.length} bits` }
  const rest = BigInt(address.length - prefix)
  if ((address.bits >> rest) << rest !== address.bits) {
    return { kind: 'wrong', why: `has bits beyond its prefix of ${prefix}: a block is named by its first address` }
  }
  if (address.length === 128 && address.bits >> 32n === 0xffffn) {
    return { kind: 'wrong', why: 'is an IPv4 address in IPv6; write the IPv4 address, which is what callers have' }
  }
  return { kind: 'cidr', cidr: `${address.text}/${prefix}` }
}

function parseIpv4(text: string): Address | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)) {
    return undefined
  }
  return { bits: parts.reduce((bits, part) => (bits << 8n) | BigInt(part), 0n), length: 32, text }
}

function parseIpv6(text: string): Address | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const [head, tail] = [groupsOf(halves[0] ?? ''), groupsOf(halves[1] ?? '')]
  if (head === undefined || tail === undefined) return undefined
  const missing = 8 - head.length - tail.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined
  const groups = [...head, ...Array<number>(missing).fill(0), ...tail]
  const bits = groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n)
  return { bits, length: 128, text: text.toLowerCase() }
}

/** 16 bits each; an IPv4 address at the end is two of them. */
function groupsOf(text: string): readonly number[] | undefined {
  if (text === '') return []
  const groups: number[] = []
  const parts = text.split(':')
  for (const [at, part] of parts.entries()) {
    const dotted = at === parts.length - 1 ? parseIpv4(part) : undefined
    if (dotted !== undefined) groups.push(Number(dotted.bits >> 16n), Number(dotted.bits & 0xffffn))
    else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16))
    else return undefined
  }
  return groups
}
