import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '@weir/core/clock.ts'
import type { ApiKey, Policy, Subject } from '@weir/core/policy/policy.ts'
import { fingerprint } from '@weir/runtime/admin-token.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { createOutgoing } from '@weir/runtime/outgoing/outgoing.ts'
import type { PolicyView } from '../policy-view.ts'
import { bearerOf, type Credential, credentialOf, fingerprintOf } from './identity/credential.ts'
import { createGuessGuard } from './identity/guess-guard.ts'
import { type IdentityRules, identityRules } from './identity/identity-rules.ts'
import { callerScope } from './identity/peer.ts'
import { createRecentlyGood } from './identity/recently-good.ts'
import { createTokenCallers } from './identity/token-callers.ts'
import { withoutCredential } from './identity/without-credential.ts'

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
  /**
   * `retryAfterMs` above 0: too many wrong credentials came from there; this one was not even looked up. With `isUnsure` it may be
   * right, and will be known by then.
   */
  | { readonly kind: 'stranger'; readonly retryAfterMs: number; readonly isUnsure?: true }

export interface Identifier {
  /**
   * At once, or where a signature must be verified as a promise. Never rejects. Knows nothing of tokens for Weir's own
   * doors: to it they are wrong keys, and count as guesses.
   */
  identify(view: PolicyView, request: CallerRequest): Caller | Promise<Caller>
  /** The caller's address as limits count it (see addressScope): the peer's, or what trusted proxies say. */
  addressOf(view: PolicyView, request: CallerRequest): string
}

/** What an identifier has seen since it was made. */
export interface IdentityCounters {
  /** Credentials that were looked at and are nobody's. */
  wrong: number
  /** Credentials that were not looked at, because too many wrong ones came from their address. */
  notLookedAt: number
  tokensVerified: number
  keyFetches: number
  keyFetchesFailed: number
}

/** An identifier together with what it holds: connections to issuers of tokens. */
export interface OpenIdentifier extends Identifier {
  readonly counters: Readonly<IdentityCounters>
  close(): Promise<void>
}

const stranger: Caller = { kind: 'stranger', retryAfterMs: 0 }

/**
 * Tells callers apart, in this order: API key, token, trusted header, address. The strongest that a request carries
 * decides, and if it is wrong nothing weaker is asked. `elapsedMs` never goes back; docs/identity.md has the whole.
 */
export function createIdentifier(options: {
  readonly clock: Clock
  readonly log: Logger
  readonly elapsedMs?: () => number
}): OpenIdentifier {
  const { clock, log, elapsedMs = () => performance.now() } = options
  const counters = { wrong: 0, notLookedAt: 0, tokensVerified: 0, keyFetches: 0, keyFetchesFailed: 0 }
  const outgoing = createOutgoing()
  const guard = createGuessGuard(elapsedMs)
  const good = createRecentlyGood(elapsedMs)
  const tokens = createTokenCallers({ outgoing, elapsedMs, nowMs: () => clock.nowMs(), log, counters })

  const wrong = (rules: IdentityRules, { socket, headers }: CallerRequest): Caller => {
    counters.wrong += 1
    guard.countWrong(callerScope(socket, headers, rules))
    return stranger
  }

  const byCredential = (view: PolicyView, rules: IdentityRules, request: CallerRequest, credential: Credential) => {
    const hash = fingerprintOf(credential, request.socket)
    if (!guard.isQuiet && !good.has(hash)) {
      const retryAfterMs = guard.shutOutMs(callerScope(request.socket, request.headers, rules))
      if (retryAfterMs > 0) {
        counters.notLookedAt += 1
        return { kind: 'stranger', retryAfterMs } as const
      }
    }
    const key = keyInForce(view.policy, hash, clock.nowMs())
    if (key !== undefined) {
      good.add(hash)
      return { kind: 'known', subject: key.subject, keyId: key.id, carriedIn: credential.place } as const
    }
    if (!credential.mayBeToken || hash === '') return wrong(rules, request)
    const settle = (caller: Caller | undefined): Caller => {
      if (caller?.kind === 'known') good.add(hash)
      return caller ?? wrong(rules, request)
    }
    const found = tokens.find(view, rules, { text: credential.text, fingerprint: hash })
    return found instanceof Promise ? found.then(settle) : settle(found)
  }

  return {
    counters,
    identify(view, request) {
      const rules = identityRules(view.policy.identity)
      const credential = credentialOf(rules, request.headers, request.url)
      return credential === undefined
        ? withoutCredential(view, rules, request)
        : byCredential(view, rules, request, credential)
    },
    addressOf: ({ policy }, { socket, headers }) => callerScope(socket, headers, identityRules(policy.identity)),
    close: () => outgoing.close(),
  }
}

/** The credential that a request carries, and the header it came in. `Authorization: Bearer` comes before `X-API-Key`. */
interface HeaderCredential {
  readonly header: 'authorization' | 'x-api-key'
  readonly key: string
}

export function readCredential(headers: IncomingHttpHeaders): HeaderCredential | undefined {
  const { authorization, 'x-api-key': apiKey } = headers
  const bearer = authorization === undefined ? undefined : bearerOf(authorization)
  if (bearer !== undefined) return { header: 'authorization', key: bearer }
  if (typeof apiKey === 'string' && apiKey !== '') return { header: 'x-api-key', key: apiKey }
  return undefined
}

/**
 * The policy's key of this text, unless it has expired. Found by its hash, so that neither memory nor timing tells a valid
 * one.
 */
export const findKey = (policy: Policy, key: string, nowMs: number): ApiKey | undefined =>
  keyInForce(policy, fingerprint(key), nowMs)

function keyInForce(policy: Policy, hash: string, nowMs: number): ApiKey | undefined {
  const key = hash === '' ? undefined : policy.keys.get(hash)
  return key === undefined || (key.expiresAtMs !== undefined && nowMs >= key.expiresAtMs) ? undefined : key
}
