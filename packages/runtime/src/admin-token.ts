import { hash, timingSafeEqual } from 'node:crypto'
import { secret, sha256 } from './read-config.ts'

/** The hash of the one token that may do everything; the token itself is stored nowhere. */
export const adminTokenVariable = secret(
  sha256({
    name: 'WEIR_ADMIN_TOKEN_SHA256',
    about: 'hash of the token that may check any subject and read usage; empty: no token',
    fallback: '',
  }),
)

/** No key or token is longer; a longer text is not hashed. */
const keyLengthMax = 256

/** Returns the fingerprint of a key or token: its SHA-256 in hex. Empty for a text that can be neither. */
export const fingerprint = (key: string): string =>
  key === '' || key.length > keyLengthMax ? '' : hash('sha256', key, 'hex')

/** The last credential of each open connection, and what was made of it. */
const lastCarried = new WeakMap<object, { text: string; make: (text: string) => string; made: string }>()

/**
 * Returns `make` of a text, called once for as long as a connection carries the same: clients send one credential with
 * every request.
 */
export function onceWhileCarried(connection: object, text: string, make: (text: string) => string): string {
  const last = lastCarried.get(connection)
  if (last !== undefined && last.text === text && last.make === make) return last.made
  const made = make(text)
  lastCarried.set(connection, { text, make, made })
  return made
}

/** Returns a check for the current admin token's fingerprint, in constant time. Without a token it always fails. */
export function createAdminCheck(tokenSha256: () => string): (keyFingerprint: string) => boolean {
  return (given) => {
    const expected = tokenSha256()
    if (given === '' || given.length !== expected.length) return false
    return timingSafeEqual(Buffer.from(given, 'latin1'), Buffer.from(expected, 'latin1'))
  }
}
