import { BlockList, isIPv4 } from 'node:net'
import type { Identity, JwtIssuer, TrustedHeaders } from '@weir/policy/policy.ts'
import type { CredentialLocation } from './caller.ts'

/** What a policy says about callers, computed once. */
export interface IdentityRules {
  readonly identity: Identity
  /** In the order in which they are tried; `authorization` means its Bearer token. */
  readonly keyHeaders: readonly CredentialLocation[]
  readonly keyQuery: CredentialLocation | undefined
  /** By the `iss` of their tokens. */
  readonly issuers: ReadonlyMap<string, JwtIssuer>
  readonly trusted: (TrustedHeaders & { readonly location: CredentialLocation; readonly peers: AddressSet }) | undefined
  /** Undefined when there are none: then no header is believed about addresses. */
  readonly proxies: AddressSet | undefined
}

const compiled = new WeakMap<Identity, IdentityRules>()

/**
 * Compiles `cidrs` as the policy has checked them: `10.0.0.0/8`, `2001:db8::/32`, or one address. `has` takes an
 * address as `plainAddress` writes it; a text that is no address is in no set.
 */
export function compileAddresses(cidrs: readonly string[]) {
  const networks = new BlockList()
  for (const cidr of cidrs) {
    const [network = '', bits] = cidr.split('/')
    const family = isIPv4(network) ? 'ipv4' : 'ipv6'
    networks.addSubnet(network, bits === undefined ? (family === 'ipv4' ? 32 : 128) : Number(bits), family)
  }
  return {
    has: (address: string): boolean => address !== '' && networks.check(address, isIPv4(address) ? 'ipv4' : 'ipv6'),
  }
}

/** Addresses and networks. */
export type AddressSet = ReturnType<typeof compileAddresses>

/** The rules of an identity, the same object each time. */
export function identityRules(identity: Identity): IdentityRules {
  const before = compiled.get(identity)
  if (before !== undefined) return before
  const { keyHeaders, keyQuery, jwt, trustedHeaders, trustedProxies } = identity
  const rules: IdentityRules = {
    identity,
    keyHeaders: keyHeaders.map((name) => ({ kind: 'header', name })),
    keyQuery: keyQuery === undefined ? undefined : { kind: 'query', name: keyQuery },
    issuers: new Map(jwt.map((one) => [one.issuer, one])),
    trusted: trustedHeaders && {
      ...trustedHeaders,
      location: { kind: 'header', name: trustedHeaders.subject },
      peers: compileAddresses(trustedHeaders.from),
    },
    proxies: trustedProxies.length === 0 ? undefined : compileAddresses(trustedProxies),
  }
  compiled.set(identity, rules)
  return rules
}
