import type { Clock } from '@weir/core/clock.ts'
import type { Policy } from '@weir/policy/policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { createOutgoing } from '@weir/runtime/outgoing/outgoing.ts'
import { type Caller, type CallerRequest, unauthenticated } from './caller.ts'
import { callerAddress, mayNameSubjects } from './caller-address.ts'
import { type Credential, credentialOf, fingerprintOf, keyInForce } from './credential.ts'
import { createAuthFailureThrottle } from './guess-protection.ts'
import { type IdentityRules, identityRules } from './identity-rules.ts'
import { anonymousSubject, namedSubject } from './named-subject.ts'
import { createTokenAuthenticator } from './token-authenticator.ts'

/** Turns a request's credential into a caller. Holds connections to issuers of tokens until it is closed. */
export type Authenticator = ReturnType<typeof createAuthenticator>

/**
 * Authenticates callers, in this order: API key, token, trusted header, address. The strongest credential that a
 * request carries decides, and if it is wrong nothing weaker is tried. `elapsedMs` never goes back; docs/identity.md
 * has the whole.
 */
export function createAuthenticator(options: {
  readonly clock: Clock
  readonly log: Logger
  readonly elapsedMs?: () => number
}) {
  const { clock, elapsedMs = () => performance.now() } = options
  const counters = {
    /** Credentials that belong to no subject. */
    wrong: 0,
    /** Further ones, after too many from their address. */
    throttled: 0,
    tokensVerified: 0,
    keysFetched: 0,
    keyFetchesFailed: 0,
  }
  const outgoing = createOutgoing()
  const countWrong = createAuthFailureThrottle(elapsedMs)
  const byToken = createTokenAuthenticator({ ...options, outgoing, elapsedMs, counters })

  const wrong = (rules: IdentityRules, request: CallerRequest): Caller => {
    const retryAfterMs = countWrong(callerAddress(request, rules))
    counters[retryAfterMs === 0 ? 'wrong' : 'throttled'] += 1
    return retryAfterMs === 0 ? unauthenticated : { kind: 'unauthenticated', retryAfterMs }
  }

  const byCredential = (policy: Policy, rules: IdentityRules, request: CallerRequest, credential: Credential) => {
    const hash = fingerprintOf(credential, request.socket)
    const key = keyInForce(policy, hash, clock.nowMs())
    if (key !== undefined) {
      return { kind: 'known', subject: key.subject, keyId: key.id, carriedIn: credential.location } as const
    }
    if (!credential.mayBeToken || hash === '') return wrong(rules, request)
    const settle = (caller: Caller | undefined): Caller => caller ?? wrong(rules, request)
    const found = byToken(policy, rules, credential.text, hash)
    return found instanceof Promise ? found.then(settle) : settle(found)
  }

  return {
    /** Events since it was made. */
    counters,
    /**
     * Returns the caller directly, or as a promise where a signature must be verified. Never rejects. It knows nothing
     * of tokens for Weir's own endpoints: they are wrong keys here, and count as wrong credentials.
     */
    authenticate(policy: Policy, request: CallerRequest): Caller | Promise<Caller> {
      const rules = identityRules(policy.identity)
      const credential = credentialOf(rules, request.headers, request.url)
      return credential === undefined
        ? withoutCredential(policy, rules, request)
        : byCredential(policy, rules, request, credential)
    },
    /** The caller's address as limits count it (see addressScope): the peer's, or what trusted proxies say. */
    addressOf: ({ identity }: Policy, request: CallerRequest): string =>
      callerAddress(request, identityRules(identity)),
    close: () => outgoing.close(),
  }
}

/** Authenticates the subject that a trusted proxy names, else an anonymous caller by its address. */
function withoutCredential(policy: Policy, rules: IdentityRules, request: CallerRequest): Caller {
  const { trusted, identity } = rules
  const id = trusted === undefined ? undefined : request.headers[trusted.subject]
  if (trusted !== undefined && id !== undefined && id !== '' && mayNameSubjects(request.socket, rules)) {
    const { planHeader, parentHeader, plan, location } = trusted
    const planName = planHeader === undefined ? undefined : request.headers[planHeader]
    const parent = parentHeader === undefined ? undefined : request.headers[parentHeader]
    // Of two parents neither is believed, and with neither the caller would not be counted where it should.
    const isTwice = isRepeated(id) || (parent !== undefined && isRepeated(parent))
    const subject = isTwice ? undefined : namedSubject(policy, { id, planName, plan, parent })
    return subject === undefined ? unauthenticated : { kind: 'known', subject, keyId: '', carriedIn: location }
  }
  if (identity.anonymousPlan === undefined) return unauthenticated
  const scope = callerAddress(request, rules)
  if (scope === '') return unauthenticated
  return { kind: 'known', subject: anonymousSubject(scope, identity.anonymousPlan), keyId: '', carriedIn: undefined }
}

/** Node joins repeated headers with a comma: a caller could have added one to the proxy's. */
const isRepeated = (value: string | readonly string[]) => typeof value !== 'string' || value.includes(',')
