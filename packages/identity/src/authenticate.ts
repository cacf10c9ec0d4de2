import type { Clock } from '@weir/core/clock.ts'
import type { Policy } from '@weir/policy/policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { createOutgoing } from '@weir/runtime/outgoing/outgoing.ts'
import { createAuthFailureThrottle } from './auth-failure-throttle.ts'
import { type Caller, type CallerRequest, unauthenticated } from './caller.ts'
import { type Credential, credentialOf, fingerprintOf, keyInForce } from './credential.ts'
import { type IdentityRules, identityRules } from './identity-rules.ts'
import { callerScope } from './peer.ts'
import { createTokenAuthenticator } from './token-authenticator.ts'
import { createValidCredentialCache } from './valid-credential-cache.ts'
import { authenticateWithoutCredential } from './without-credential.ts'

/** Turns a request's credential into a caller. Holds connections to issuers of tokens until it is closed. */
export interface Authenticator {
  /**
   * Returns the caller directly, or as a promise where a signature must be verified. Never rejects. It knows nothing of
   * tokens for Weir's own endpoints: they are wrong keys here, and count as wrong credentials.
   */
  authenticate(policy: Policy, request: CallerRequest): Caller | Promise<Caller>
  /** The caller's address as limits count it (see addressScope): the peer's, or what trusted proxies say. */
  addressOf(policy: Policy, request: CallerRequest): string
  /** Events since it was made. */
  readonly counters: {
    /** Credentials that were looked up and belong to no subject. */
    wrong: number
    /** Credentials that were not looked up, because too many wrong ones came from their address. */
    notLookedAt: number
    tokensVerified: number
    keyFetches: number
    keyFetchesFailed: number
  }
  close(): Promise<void>
}

/**
 * Authenticates callers, in this order: API key, token, trusted header, address. The strongest credential that a
 * request carries decides, and if it is wrong nothing weaker is tried. `elapsedMs` never goes back; docs/identity.md
 * has the whole.
 */
export function createAuthenticator(options: {
  readonly clock: Clock
  readonly log: Logger
  readonly elapsedMs?: () => number
}): Authenticator {
  const { clock, log, elapsedMs = () => performance.now() } = options
  const counters = { wrong: 0, notLookedAt: 0, tokensVerified: 0, keyFetches: 0, keyFetchesFailed: 0 }
  const outgoing = createOutgoing()
  const throttle = createAuthFailureThrottle(elapsedMs)
  const valid = createValidCredentialCache(elapsedMs)
  const tokens = createTokenAuthenticator({ outgoing, elapsedMs, nowMs: () => clock.nowMs(), log, counters })

  const wrong = (rules: IdentityRules, { socket, headers }: CallerRequest): Caller => {
    counters.wrong += 1
    throttle.countWrong(callerScope(socket, headers, rules))
    return unauthenticated
  }

  const byCredential = (policy: Policy, rules: IdentityRules, request: CallerRequest, credential: Credential) => {
    const hash = fingerprintOf(credential, request.socket)
    if (!throttle.isQuiet && !valid.has(hash)) {
      const retryAfterMs = throttle.blockedMs(callerScope(request.socket, request.headers, rules))
      if (retryAfterMs > 0) {
        counters.notLookedAt += 1
        return { kind: 'unauthenticated', retryAfterMs } as const
      }
    }
    const key = keyInForce(policy, hash, clock.nowMs())
    if (key !== undefined) {
      valid.add(hash)
      return { kind: 'known', subject: key.subject, keyId: key.id, carriedIn: credential.place } as const
    }
    if (!credential.mayBeToken || hash === '') return wrong(rules, request)
    const settle = (caller: Caller | undefined): Caller => {
      if (caller?.kind === 'known') valid.add(hash)
      return caller ?? wrong(rules, request)
    }
    const found = tokens.authenticate(policy, rules, { text: credential.text, fingerprint: hash })
    return found instanceof Promise ? found.then(settle) : settle(found)
  }

  return {
    counters,
    authenticate(policy, request) {
      const rules = identityRules(policy.identity)
      const credential = credentialOf(rules, request.headers, request.url)
      return credential === undefined
        ? authenticateWithoutCredential(policy, rules, request)
        : byCredential(policy, rules, request, credential)
    },
    addressOf: (policy, { socket, headers }) => callerScope(socket, headers, identityRules(policy.identity)),
    close: () => outgoing.close(),
  }
}
