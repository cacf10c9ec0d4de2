import { type LookupAddress, type LookupAllOptions, lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * Whether an address is somewhere on the public internet. Loopback, private, link-local, metadata, documentation,
 * multicast and reserved ranges are not, nor are IPv4 addresses dressed as IPv6 (mapped, compatible, NAT64, 6to4), nor
 * is any IPv6 outside 2000::/3, the only block that is handed out.
 */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.process(text)
  if (address instanceof ipaddr.IPv6 && ((address.parts[0] ?? 0) & 0xe000) !== 0x2000) return false
  return address.range() === 'unicast'
}

/** Node's own, or a test's. */
type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void,
) => void

/**
 * A lookup that hands a socket only public addresses. It runs at connect time, and what it has checked is what the
 * socket gets, so there is no gap between check and use; if one address of several is not public, none is taken.
 */
export const createPublicLookup =
  (resolve: Resolve = lookup): LookupFunction =>
  (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, found) => {
      const refused = found?.find(({ address }) => !isPublicAddress(address))
      const [first] = found ?? []
      if (error !== null) callback(error, '')
      else if (refused !== undefined || first === undefined) {
        callback(new Error(`${hostname} is at ${refused?.address ?? 'no address'}, which is not public`), '')
      } else if (options.all === true) callback(null, found)
      else callback(null, first.address, first.family)
    })
  }
