import type { Clock } from '@weir/core/clock.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { createOutgoing } from '@weir/runtime/outgoing/outgoing.ts'
import type { PolicyView } from '../policy-view.ts'
import { createAuthFailureThrottle } from './identity/auth-failure-throttle.ts'
import { type Authenticator, type Caller, type CallerRequest, unauthenticated } from './identity/caller.ts'
import { type Credential, credentialOf, fingerprintOf, keyInForce } from './identity/credential.ts'
import { type IdentityRules, identityRules } from './identity/identity-rules.ts'
import { callerScope } from './identity/peer.ts'
import { createTokenAuthenticator } from './identity/token-authenticator.ts'
import { createValidCredentialCache } from './identity/valid-credential-cache.ts'
import { authenticateWithoutCredential } from './identity/without-credential.ts'

/** An authenticator together with what it holds: connections to issuers of tokens. */
export interface OpenAuthenticator extends Authenticator {
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
}): OpenAuthenticator {
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

  const byCredential = (view: PolicyView, rules: IdentityRules, request: CallerRequest, credential: Credential) => {
    const hash = fingerprintOf(credential, request.socket)
    if (!throttle.isQuiet && !valid.has(hash)) {
      const retryAfterMs = throttle.blockedMs(callerScope(request.socket, request.headers, rules))
      if (retryAfterMs > 0) {
        counters.notLookedAt += 1
        return { kind: 'unauthenticated', retryAfterMs } as const
      }
    }
    const key = keyInForce(view.policy, hash, clock.nowMs())
    if (key !== undefined) {
      valid.add(hash)
      return { kind: 'known', subject: key.subject, keyId: key.id, carriedIn: credential.place } as const
    }
    if (!credential.mayBeToken || hash === '') return wrong(rules, request)
    const settle = (caller: Caller | undefined): Caller => {
      if (caller?.kind === 'known') valid.add(hash)
      return caller ?? wrong(rules, request)
    }
    const found = tokens.authenticate(view, rules, { text: credential.text, fingerprint: hash })
    return found instanceof Promise ? found.then(settle) : settle(found)
  }

  return {
    counters,
    authenticate(view, request) {
      const rules = identityRules(view.policy.identity)
      const credential = credentialOf(rules, request.headers, request.url)
      return credential === undefined
        ? authenticateWithoutCredential(view, rules, request)
        : byCredential(view, rules, request, credential)
    },
    addressOf: ({ policy }, { socket, headers }) => callerScope(socket, headers, identityRules(policy.identity)),
    close: () => outgoing.close(),
  }
}
