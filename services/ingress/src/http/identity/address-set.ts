import { BlockList, isIPv4 } from 'node:net'

/** Addresses within any of some networks. */
export interface AddressSet {
  /** Of an address as `plainAddress` writes it; what is no address is in no set. */
  has(address: string): boolean
}

/** `cidrs` as the policy has checked them: `10.0.0.0/8`, `2001:db8::/32`, or one address. */
export function compileAddresses(cidrs: readonly string[]): AddressSet {
  const networks = new BlockList()
  for (const cidr of cidrs) {
    const [network = '', bits] = cidr.split('/')
    const family = isIPv4(network) ? 'ipv4' : 'ipv6'
    networks.addSubnet(network, bits === undefined ? (family === 'ipv4' ? 32 : 128) : Number(bits), family)
  }
  return { has: (address) => address !== '' && networks.check(address, isIPv4(address) ? 'ipv4' : 'ipv6') }
}
