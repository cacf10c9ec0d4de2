import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Subject } from '@weir/policy/policy.ts'

/** What a caller is authenticated by: Node's `IncomingMessage`, or the original request behind a gateway. */
export interface CallerRequest {
  readonly headers: IncomingHttpHeaders
  /** Path and query of the original request. */
  readonly url: string
  readonly socket: Socket
}

/** Where the credential was. It is for Weir alone and never forwarded. */
export interface CredentialLocation {
  readonly kind: 'header' | 'query'
  readonly name: string
}

/** What a verified token says of its bearer, by name. */
export type Claims = Readonly<Record<string, unknown>>

/** The sender of a request, as far as its credential says. */
export type Caller =
  | {
      readonly kind: 'known'
      readonly subject: Subject
      /** Empty for callers that have no API key. */
      readonly keyId: string
      readonly carriedIn: CredentialLocation | undefined
      /** Absent for callers that have no token. */
      readonly claims?: Claims
    }
  /**
   * `retryAfterMs` above 0: its credential is wrong, and too many wrong ones came from there before. With
   * `isUnverifiable` it may be right, and will be known by then.
   */
  | { readonly kind: 'unauthenticated'; readonly retryAfterMs: number; readonly isUnverifiable?: true }

/** A caller without a valid credential, who may try again immediately. */
export const unauthenticated: Caller = { kind: 'unauthenticated', retryAfterMs: 0 }
