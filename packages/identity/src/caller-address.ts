import type { Socket } from 'node:net'
import type { Identity } from '@weir/policy/policy.ts'
import { addressScope, plainAddress } from '@weir/runtime/address-scope.ts'
import type { CallerRequest } from './caller.ts'
import { forwardedBy, hopsMax, type ReadHop } from './forwarded.ts'
import { type AddressSet, type IdentityRules, identityRules } from './identity-rules.ts'

/** The other end of a connection, and what the policy lets it say. */
interface Peer {
  readonly rules: IdentityRules
  readonly address: string
  readonly scope: string
  /** It may say where requests come from. */
  readonly isProxy: boolean
  /** It may say who calls. */
  readonly namesSubjects: boolean
  /** The latest list of hops and the caller behind it: most connections carry the requests of one caller. */
  lastList: string | undefined
  lastScope: string
}

const peers = new WeakMap<Socket, Peer>()

/** Computed once per connection and policy. */
function peerOf(socket: Socket, rules: IdentityRules): Peer {
  const before = peers.get(socket)
  if (before !== undefined && before.rules === rules) return before
  const address = before?.address ?? plainAddress(socket.remoteAddress ?? '')
  const peer = {
    rules,
    address,
    scope: addressScope(address, rules.identity.ipv6Prefix),
    isProxy: rules.proxies?.has(address) === true,
    namesSubjects: rules.trusted?.peers.has(address) === true,
    lastList: undefined,
    lastScope: '',
  }
  peers.set(socket, peer)
  return peer
}

/** Whether the peer of the connection itself may name subjects, whatever it says about addresses behind it. */
export const mayNameSubjects = (socket: Socket, rules: IdentityRules): boolean => peerOf(socket, rules).namesSubjects

/** Whether the peer of the connection itself is a proxy that may say what the original request was. */
export const isTrustedProxy = (socket: Socket, identity: Identity): boolean =>
  peerOf(socket, identityRules(identity)).isProxy

/** The caller's address as limits count it, by `addressScope`; empty for a connection that has none. */
export function callerAddress({ socket, headers }: CallerRequest, rules: IdentityRules): string {
  const peer = peerOf(socket, rules)
  if (!peer.isProxy || rules.proxies === undefined) return peer.scope
  const forwarded = forwardedBy(headers)
  if (forwarded === undefined) return peer.scope
  const { list, readHop } = forwarded
  if (list === peer.lastList) return peer.lastScope
  const scope = addressScope(rightmostUntrusted(peer.address, list, readHop, rules.proxies), rules.identity.ipv6Prefix)
  peer.lastList = list
  peer.lastScope = scope
  return scope
}

/**
 * The caller behind trusted proxies: the rightmost hop that is none of them. Each proxy appends the address that it
 * talked to, and what is further left any client can have written. A hop that cannot be read ends the walk at the last
 * one that could; so does the end of the list.
 */
export function rightmostUntrusted(peer: string, list: string, readHop: ReadHop, proxies: AddressSet): string {
  let address = peer
  let end = list.length
  for (let hops = 0; hops < hopsMax; hops += 1) {
    const comma = end === 0 ? -1 : list.lastIndexOf(',', end - 1)
    const hop = readHop(list.slice(comma + 1, end).trim())
    if (hop === '') return address
    address = hop
    if (comma === -1 || !proxies.has(hop)) return address
    end = comma
  }
  return address
}
