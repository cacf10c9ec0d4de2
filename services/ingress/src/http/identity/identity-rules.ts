import type { Identity, JwtIssuer, TrustedHeaders } from '@weir/policy/policy.ts'
import { type AddressSet, compileAddresses } from './address-set.ts'
import type { CredentialPlace } from './caller.ts'

/** A place where a key may stand, as it is looked at in each request. */
export interface KeyPlace {
  readonly place: CredentialPlace
  readonly name: string
}

/** What a policy says about callers, worked out once. */
export interface IdentityRules {
  readonly identity: Identity
  /** In the order they are looked at; `authorization` stands for its Bearer token. */
  readonly keyHeaders: readonly KeyPlace[]
  readonly keyQuery: KeyPlace | undefined
  /** By the `iss` of their tokens. */
  readonly issuers: ReadonlyMap<string, JwtIssuer>
  readonly trusted: (TrustedHeaders & { readonly place: CredentialPlace; readonly peers: AddressSet }) | undefined
  /** Undefined when there are none: then nobody's word on addresses is asked for. */
  readonly proxies: AddressSet | undefined
}

const compiled = new WeakMap<Identity, IdentityRules>()

/** The rules of an identity, the same object each time. */
export function identityRules(identity: Identity): IdentityRules {
  const before = compiled.get(identity)
  if (before !== undefined) return before
  const rules = compile(identity)
  compiled.set(identity, rules)
  return rules
}

function compile(identity: Identity): IdentityRules {
  const { keyHeaders, keyQuery, jwt, trustedHeaders, trustedProxies } = identity
  const inHeader = (name: string): KeyPlace => ({ name, place: { kind: 'header', name } })
  return {
    identity,
    keyHeaders: keyHeaders.map(inHeader),
    keyQuery: keyQuery === undefined ? undefined : { name: keyQuery, place: { kind: 'query', name: keyQuery } },
    issuers: new Map(jwt.map((one) => [one.issuer, one])),
    trusted: trustedHeaders && {
      ...trustedHeaders,
      place: { kind: 'header', name: trustedHeaders.subject },
      peers: compileAddresses(trustedHeaders.from),
    },
    proxies: trustedProxies.length === 0 ? undefined : compileAddresses(trustedProxies),
  }
}
