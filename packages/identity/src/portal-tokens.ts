import { signingKeysOf } from '@weir/runtime/signing-keys.ts'
import { errors, jwtVerify, SignJWT } from 'jose'

/** What every portal token begins with, so that people and scanners recognize a leaked one. */
export const portalPrefix = 'weir_portal_'
/** Ours have about 250 characters with the longest subject; a longer text is not verified. */
const lengthMax = 1_024
const algorithm = 'HS256'
/** No other token of the same key, should it sign any, is one of a portal. */
const audience = 'weir-portal'

/** What a portal token says. */
export interface PortalClaims {
  readonly subject: string
  /** `notBefore` of the subject's entry in `portals` as it was when the token was made; empty where there was none. */
  readonly after: string
}

/**
 * Signs and verifies portal tokens: JWTs with HS256 under the current text of `WEIR_PORTAL_KEY`. The first key signs;
 * both verify. The algorithm is the one of this file, whatever a token's header says.
 */
export function createPortalTokens(keyText: () => string) {
  const keysNow = () => signingKeysOf(keyText()).map((key) => new TextEncoder().encode(key))

  return {
    /** A new token; undefined where there is no key. */
    async sign({ subject, after }: PortalClaims, fromMs: number, untilMs: number): Promise<string | undefined> {
      const [key] = keysNow()
      if (key === undefined) return undefined
      const token = new SignJWT(after === '' ? {} : { after })
        .setProtectedHeader({ alg: algorithm })
        .setSubject(subject)
        .setAudience(audience)
        .setIssuedAt(Math.floor(fromMs / 1_000))
        .setExpirationTime(Math.ceil(untilMs / 1_000))
      return `${portalPrefix}${await token.sign(key)}`
    },

    /** What a token says that one of the keys has signed and that has not ended; undefined for any other text. */
    async verify(text: string, nowMs: number): Promise<PortalClaims | undefined> {
      if (text.length > lengthMax || !text.startsWith(portalPrefix)) return undefined
      const token = text.slice(portalPrefix.length)
      for (const key of keysNow()) {
        try {
          const options = { algorithms: [algorithm], audience, requiredClaims: ['sub', 'iat', 'exp'] }
          const { payload } = await jwtVerify(token, key, { ...options, currentDate: new Date(nowMs) })
          const { sub, after = '' } = payload
          return sub === undefined || typeof after !== 'string' ? undefined : { subject: sub, after }
        } catch (error) {
          if (!(error instanceof errors.JOSEError)) throw error
        }
      }
      return undefined
    },
  }
}
