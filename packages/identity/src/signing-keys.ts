import type { Clock } from '@weir/core/clock.ts'
import type { JwtIssuer } from '@weir/policy/policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Outgoing } from '@weir/runtime/outgoing/outgoing.ts'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose'

/** Keys are fetched again after this; issuers publish new ones long before they sign with them. */
const refreshAfterMs = 600_000
/** While an issuer is down its keys are used for this long. Beyond, a key may have been withdrawn for a reason. */
const staleMaxMs = 86_400_000
/** The issuer is asked at most this often, whatever key ids tokens name. */
const attemptEveryMs = 10_000
/** A request with a new token waits this long for its issuer's answer: half of what gateways give Weir (2 s). */
const waitMsMax = 1_000
/** The issuer may take longer than requests wait: later requests then find its keys. Less than `attemptEveryMs`. */
const fetchDeadlineMs = 3_000
/** A key has 0.5 kB, or 2 kB with its certificate; issuers have a handful. */
const answerBytesMax = 262_144

/** The keys could not be fetched; nothing is known about the token. */
export class SigningKeysUnavailable extends Error {}

/** The parts of an authenticator that tokens and their keys are verified with. */
export interface TokenParts {
  readonly clock: Clock
  readonly outgoing: Outgoing
  readonly elapsedMs: () => number
  readonly log: Logger
  readonly counters: { tokensVerified: number; keysFetched: number; keyFetchesFailed: number }
}

/**
 * Caches an issuer's public keys, fetched when one is first needed: refreshed in the background while they are in use,
 * kept for a day while the issuer is down, and fetched again immediately when a token names a key that is not among
 * them, in case the issuer has a new one. The result rejects with `SigningKeysUnavailable`, or as jose does when no key
 * fits.
 */
export function createSigningKeys(issuer: JwtIssuer, parts: TokenParts): JWTVerifyGetKey {
  const { outgoing, elapsedMs, log, counters } = parts
  let keys: { readonly set: JWTVerifyGetKey; readonly text: string } | undefined
  let fetchedAt = 0
  let triedAt = Number.NEGATIVE_INFINITY
  let hasFailed = false
  /** Whether keys were fetched in time. */
  let underWay: Promise<boolean> | undefined

  const fetchKeys = async (): Promise<boolean> => {
    try {
      const text = await fetchKeySet(issuer, outgoing)
      // The same text keeps the set, in which jose has the keys imported already.
      if (keys?.text !== text) keys = { text, set: createLocalJWKSet(JSON.parse(text)) }
      fetchedAt = elapsedMs()
      hasFailed = false
      counters.keysFetched += 1
      return true
    } catch (error) {
      counters.keyFetchesFailed += 1
      hasFailed = true
      const consequence = keys === undefined ? 'its tokens are refused' : 'using the previous keys'
      log.warn({ issuer: issuer.issuer, err: error, consequence }, 'signing keys not fetched')
      return false
    } finally {
      underWay = undefined
    }
  }

  /** Whether keys were fetched just now; false too while the issuer takes longer than requests wait. */
  const refresh = (): Promise<boolean> | boolean => {
    if (underWay !== undefined) return underWay
    const now = elapsedMs()
    if (now - triedAt < attemptEveryMs) return false
    triedAt = now
    underWay = withTimeout(fetchKeys(), waitMsMax, false)
    return underWay
  }

  return async function keyFor(header, token) {
    const age = elapsedMs() - fetchedAt
    if (keys === undefined || age > staleMaxMs) {
      await refresh()
      if (keys === undefined || elapsedMs() - fetchedAt > staleMaxMs) throw new SigningKeysUnavailable(issuer.issuer)
    } else if (age > refreshAfterMs) void refresh()
    try {
      return await keys.set(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      if (await refresh()) return await keys.set(header, token)
      // The issuer may have a new key, and did not say.
      if (hasFailed || underWay !== undefined) throw new SigningKeysUnavailable(issuer.issuer)
      throw error
    }
  }
}

/** Fetches the text of a JWKS. Over plain http any host on the way could put in a key of its own. */
async function fetchKeySet({ jwksUrl, allowPrivate }: JwtIssuer, outgoing: Outgoing): Promise<string> {
  if (!allowPrivate && new URL(jwksUrl).protocol !== 'https:') throw new Error('jwksUrl must be https')
  const headers = { accept: 'application/jwk-set+json, application/json', 'accept-encoding': 'identity' }
  const { status, body, isCut } = await outgoing.send({
    method: 'GET',
    url: jwksUrl,
    allowPrivate,
    headers,
    deadlineMs: fetchDeadlineMs,
    answerBytesMax,
  })
  if (status !== 200) throw new Error(`the issuer answered ${status} to the request for its keys`)
  if (isCut) throw new Error(`the issuer's keys are over ${answerBytesMax} bytes`)
  return body.toString('utf8')
}
