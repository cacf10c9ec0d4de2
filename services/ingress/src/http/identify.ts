import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { ApiKey, Policy, Subject } from '@weir/core/policy/policy.ts'
import { fingerprint } from '@weir/runtime/admin-token.ts'
import type { PolicyView } from '../policy-view.ts'
import { peerScope } from './caller-address.ts'

/** What callers are told apart by. Node's `IncomingMessage` is one, but behind other proxies the URL may be another. */
export interface CallerRequest {
  readonly headers: IncomingHttpHeaders
  /** Path and query of the original request. */
  readonly url: string
  readonly socket: Socket
}

/** Where the credential stood. It is for us alone and never forwarded. */
export type CredentialPlace =
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'query'; readonly name: string }

export type Caller =
  | {
      readonly kind: 'known'
      readonly subject: Subject
      /** Empty for callers that have no API key. */
      readonly keyId: string
      readonly carriedIn: CredentialPlace | undefined
    }
  /** `retryAfterMs` above 0: too many wrong credentials came from there; this one was not even looked up. */
  | { readonly kind: 'stranger'; readonly retryAfterMs: number }

export interface Identifier {
  /** At once, or where a signature must be verified as a promise. Never rejects. */
  identify(view: PolicyView, request: CallerRequest): Caller | Promise<Caller>
  /** The caller's address as limits count it (see addressScope): the peer's, or what trusted proxies say. */
  addressOf(view: PolicyView, request: CallerRequest): string
}

const stranger: Caller = { kind: 'stranger', retryAfterMs: 0 }

export function createIdentifier(): Identifier {
  return {
    identify(view, { headers }) {
      const credential = readCredential(headers)
      const key = credential === undefined ? undefined : findKey(view.policy, credential.key)
      if (key === undefined || credential === undefined) return stranger
      const carriedIn = { kind: 'header', name: credential.header } as const
      return { kind: 'known', subject: key.subject, keyId: key.id, carriedIn }
    },
    addressOf: (_view, { socket }) => peerScope(socket),
  }
}

/** The credential that a request carries, and the header it came in. `Authorization: Bearer` comes before `X-API-Key`. */
interface Credential {
  readonly header: 'authorization' | 'x-api-key'
  readonly key: string
}

export function readCredential(headers: IncomingHttpHeaders): Credential | undefined {
  const { authorization, 'x-api-key': apiKey } = headers
  if (authorization !== undefined && /^bearer /i.test(authorization)) {
    return { header: 'authorization', key: authorization.slice(7).trim() }
  }
  if (typeof apiKey === 'string' && apiKey !== '') return { header: 'x-api-key', key: apiKey }
  return undefined
}

/** The policy's key of this text, found by its hash, so that neither memory nor timing tells a valid one. */
export const findKey = (policy: Policy, key: string): ApiKey | undefined => policy.keys.get(fingerprint(key))
