import type { JwtIssuer, Policy } from '@weir/policy/policy.ts'
import { decodeJwt, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import { type Caller, unauthenticated } from './caller.ts'
import { bearerToken } from './credential.ts'
import type { IdentityRules } from './identity-rules.ts'
import { namedSubject } from './named-subject.ts'
import { createSigningKeys, SigningKeysUnavailable, type TokenParts } from './signing-keys.ts'

/** Remembered answers, about 0.5 kB each. */
const answersMax = 20_000
/** A token whose key the issuer has withdrawn is accepted for this long still. */
const answerMsMax = 60_000
/** Clocks of issuers and of this machine differ by less. */
const clockToleranceS = 5
/** Concurrent verifications. One takes 0.2 ms of a core; only an issuer that does not answer lets them gather. */
const underWayMax = 4_096
/** Issuers whose keys are cached. A policy has at most 16, and edits leave the keys of others behind. */
const issuersMax = 100
/** Keys tried for a token that does not name its key. */
const keysTriedMax = 4
/** The algorithms that issuers may sign with. Whatever a policy says, a public key is never the secret of an HMAC. */
const signatures = /^(?:(?:RS|PS|ES)(?:256|384|512)|EdDSA|Ed25519)$/

/** An issuer that did not answer is asked again after 10 s at the latest. */
const unverifiable: Caller = { kind: 'unauthenticated', retryAfterMs: 10_000, isUnverifiable: true }

/** What a token was found to be. */
type TokenAnswer =
  | { readonly issuer: JwtIssuer; readonly claims: JWTPayload }
  /** No issuer of the policy was found to have signed it. */
  | 'guess'
  /** It is signed, but out of date or for another audience. */
  | 'refused'
  /** It may be right: its issuer's keys could not be had, or too many tokens are being verified. */
  | 'unsure'

/** A remembered answer. */
interface KnownToken {
  readonly rules: IdentityRules
  readonly answer: TokenAnswer
  readonly freshUntil: number
}

/** Authenticates callers by signed tokens, with the keys of their issuers, and remembers the answers. */
export function createTokenAuthenticator(parts: TokenParts) {
  const { elapsedMs, clock, counters } = parts
  const answers = new LRUCache<string, KnownToken>({ max: answersMax })
  const underWay = new Map<string, { readonly rules: IdentityRules; readonly answer: Promise<KnownToken> }>()
  const keysOf = new LRUCache<string, JWTVerifyGetKey>({ max: issuersMax })

  const signingKeys = (issuer: JwtIssuer): JWTVerifyGetKey => {
    const name = JSON.stringify([issuer.issuer, issuer.jwksUrl, issuer.allowPrivate])
    const keys = keysOf.get(name) ?? createSigningKeys(issuer, parts)
    keysOf.set(name, keys)
    return keys
  }

  const verifyNow = async (token: string, rules: IdentityRules): Promise<KnownToken> => {
    const issuer = issuerOf(token, rules)
    if (issuer === undefined) return { rules, answer: 'guess', freshUntil: elapsedMs() + answerMsMax }
    counters.tokensVerified += 1
    try {
      const claims = await verifiedClaims(token, issuer, signingKeys(issuer), clock.nowMs())
      const freshMs = Math.min(answerMsMax, ((claims.exp ?? 0) + clockToleranceS) * 1_000 - clock.nowMs())
      return { rules, answer: { issuer, claims }, freshUntil: elapsedMs() + freshMs }
    } catch (error) {
      // Without the issuer's keys the token may be right: the next request asks again.
      if (error instanceof SigningKeysUnavailable) return { rules, answer: 'unsure', freshUntil: 0 }
      const isSigned = error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed
      // A token that is not good yet may become so; every other fault stays.
      const freshUntil = isSigned && error.claim === 'nbf' ? 0 : elapsedMs() + answerMsMax
      return { rules, answer: isSigned ? 'refused' : 'guess', freshUntil }
    }
  }

  /** Never rejects. Requests with one token share one verification. */
  const verify = (token: string, fingerprint: string, rules: IdentityRules): Promise<KnownToken> => {
    const before = underWay.get(fingerprint)
    if (before !== undefined && before.rules === rules) return before.answer
    if (underWay.size >= underWayMax) return Promise.resolve({ rules, answer: 'unsure', freshUntil: 0 })
    const answer = verifyNow(token, rules).then((found) => {
      if (underWay.get(fingerprint)?.answer === answer) underWay.delete(fingerprint)
      if (found.freshUntil > 0) answers.set(fingerprint, found)
      return found
    })
    underWay.set(fingerprint, { rules, answer })
    return answer
  }

  /**
   * Returns the caller directly for a token that was verified within the last minute. Undefined for a token that no
   * issuer of the policy was found to have signed. Never rejects.
   */
  return function authenticate(
    policy: Policy,
    rules: IdentityRules,
    token: string,
    fingerprint: string,
  ): Caller | undefined | Promise<Caller | undefined> {
    const known = answers.get(fingerprint)
    if (known !== undefined && known.rules === rules && elapsedMs() < known.freshUntil) return callerOf(policy, known)
    return verify(token, fingerprint, rules).then((found) => callerOf(policy, found))
  }
}

function callerOf(policy: Policy, found: KnownToken): Caller | undefined {
  const { answer } = found
  if (answer === 'guess') return undefined
  if (answer === 'unsure') return unverifiable
  if (answer === 'refused') return unauthenticated
  const { issuer, claims } = answer
  const planName = issuer.planClaim === undefined ? undefined : claims[issuer.planClaim]
  const parent = issuer.parentClaim === undefined ? undefined : claims[issuer.parentClaim]
  const subject = namedSubject(policy, { id: claims[issuer.subjectClaim], planName, plan: issuer.plan, parent })
  return subject === undefined ? unauthenticated : { kind: 'known', subject, keyId: '', carriedIn: bearerToken, claims }
}

/** The issuer that the token names. None of its claims is believed yet. */
function issuerOf(token: string, { issuers }: IdentityRules): JwtIssuer | undefined {
  try {
    return issuers.get(decodeJwt(token).iss ?? '')
  } catch {
    return undefined // its claims cannot be read: it only looks like a token
  }
}

/** Rejects for any fault of the token. The signature is checked before any claim is. */
async function verifiedClaims(
  token: string,
  issuer: JwtIssuer,
  keyFor: JWTVerifyGetKey,
  nowMs: number,
): Promise<JWTPayload> {
  const options = {
    algorithms: issuer.algorithms.filter((name) => signatures.test(name)),
    issuer: issuer.issuer,
    ...(issuer.audience === undefined ? {} : { audience: issuer.audience }),
    requiredClaims: ['exp'],
    clockTolerance: clockToleranceS,
    currentDate: new Date(nowMs),
  }
  try {
    return (await jwtVerify(token, keyFor, options)).payload
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
    let tried = 0
    for await (const key of error) {
      try {
        return (await jwtVerify(token, key, options)).payload
      } catch (failure) {
        tried += 1
        if (!(failure instanceof errors.JWSSignatureVerificationFailed) || tried === keysTriedMax) throw failure
      }
    }
    throw error
  }
}
