import type { Clock } from '@weir/core/clock.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { createOutgoing } from '@weir/runtime/outgoing/outgoing.ts'
import type { PolicyView } from '../policy-view.ts'
import { type Caller, type CallerRequest, stranger } from './identity/caller.ts'
import { type Credential, credentialOf, fingerprintOf, keyInForce } from './identity/credential.ts'
import { createGuessGuard } from './identity/guess-guard.ts'
import { type IdentityRules, identityRules } from './identity/identity-rules.ts'
import { callerScope } from './identity/peer.ts'
import { createRecentlyGood } from './identity/recently-good.ts'
import { createTokenCallers } from './identity/token-callers.ts'
import { withoutCredential } from './identity/without-credential.ts'

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
