import { isIPv4, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * The address that a caller is limited and metered by: an IPv4 address as it is, of an IPv6 address the /64, because a
 * single customer holds 2^64 of them. IPv4 inside IPv6 (`::ffff:1.2.3.4`) is IPv4. Empty for what is no address.
 */
export function addressScope(text: string): string {
  if (isIPv4(text)) return text
  if (!isIPv6(text)) return ''
  const address = ipaddr.process(text)
  if (!(address instanceof ipaddr.IPv6)) return address.toString()
  const network = address.parts.map((part, index) => (index < 4 ? part : 0))
  return `${new ipaddr.IPv6(network).toString()}/64`
}
