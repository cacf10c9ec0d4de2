import type { JwtIssuer } from '@weir/policy/policy.ts'
import { decodeJwt, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import type { IdentityRules } from './identity-rules.ts'
import { createSigningKeys, type KeyFetching, SigningKeysUnavailable } from './signing-keys.ts'

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

/** What a token was found to be. */
export type TokenAnswer =
  | { readonly kind: 'right'; readonly issuer: JwtIssuer; readonly claims: JWTPayload }
  /** `isGuess`: no issuer of the policy was found to have signed it. A token that is only out of date is no guess. */
  | { readonly kind: 'refused'; readonly isGuess: boolean }
  /** It may be right: its issuer's keys could not be had, or too many tokens are being verified. */
  | { readonly kind: 'unsure' }

/** A remembered answer, with a place for the caller that it makes. */
export interface KnownToken<T> {
  readonly rules: IdentityRules
  readonly answer: TokenAnswer
  readonly freshUntil: number
  note: T | undefined
}

/** The parts of a verifier. */
export interface VerifierOptions extends KeyFetching {
  readonly nowMs: () => number
  readonly counters: KeyFetching['counters'] & { tokensVerified: number }
}

/** Verifies signed tokens with the keys of their issuers, and remembers the answers. */
export function createTokenVerifier<T>(options: VerifierOptions) {
  const { elapsedMs, nowMs, counters } = options
  const answers = new LRUCache<string, KnownToken<T>>({ max: answersMax })
  const underWay = new Map<string, { readonly rules: IdentityRules; readonly answer: Promise<KnownToken<T>> }>()
  const keysOf = new LRUCache<string, JWTVerifyGetKey>({ max: issuersMax })

  const signingKeys = (issuer: JwtIssuer): JWTVerifyGetKey => {
    const name = JSON.stringify([issuer.issuer, issuer.jwksUrl, issuer.allowPrivate])
    const before = keysOf.get(name)
    if (before !== undefined) return before
    const keys = createSigningKeys(issuer, options)
    keysOf.set(name, keys)
    return keys
  }

  const verifyNow = async (token: string, rules: IdentityRules): Promise<Omit<KnownToken<T>, 'note'>> => {
    const issuer = issuerOf(token, rules)
    if (issuer === undefined) return { rules, answer: guess, freshUntil: elapsedMs() + answerMsMax }
    counters.tokensVerified += 1
    try {
      const claims = await verifiedClaims(token, issuer, signingKeys(issuer), nowMs())
      const freshMs = Math.min(answerMsMax, ((claims.exp ?? 0) + clockToleranceS) * 1_000 - nowMs())
      return { rules, answer: { kind: 'right', issuer, claims }, freshUntil: elapsedMs() + freshMs }
    } catch (error) {
      // Without the issuer's keys the token may be right: the next request asks again.
      if (error instanceof SigningKeysUnavailable) return { rules, answer: unsure, freshUntil: 0 }
      const isSigned = error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed
      // A token that is not good yet may become so; every other fault stays.
      const freshUntil = isSigned && error.claim === 'nbf' ? 0 : elapsedMs() + answerMsMax
      return { rules, answer: isSigned ? refused : guess, freshUntil }
    }
  }

  return {
    /** The answer of the last minute to the token of this fingerprint under the same rules. */
    known(fingerprint: string, rules: IdentityRules): KnownToken<T> | undefined {
      const known = answers.get(fingerprint)
      return known !== undefined && known.rules === rules && elapsedMs() < known.freshUntil ? known : undefined
    },
    /** Never rejects. Requests with one token share one verification. */
    verify(token: string, fingerprint: string, rules: IdentityRules): Promise<KnownToken<T>> {
      const before = underWay.get(fingerprint)
      if (before !== undefined && before.rules === rules) return before.answer
      if (underWay.size >= underWayMax) {
        return Promise.resolve({ rules, answer: unsure, freshUntil: 0, note: undefined })
      }
      const answer = verifyNow(token, rules).then((found) => {
        if (underWay.get(fingerprint)?.answer === answer) underWay.delete(fingerprint)
        const known: KnownToken<T> = { ...found, note: undefined }
        if (found.freshUntil > 0) answers.set(fingerprint, known)
        return known
      })
      underWay.set(fingerprint, { rules, answer })
      return answer
    },
  }
}

const refused: TokenAnswer = { kind: 'refused', isGuess: false }
const unsure: TokenAnswer = { kind: 'unsure' }
const guess: TokenAnswer = { kind: 'refused', isGuess: true }

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
