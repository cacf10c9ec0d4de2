import { hash, timingSafeEqual } from 'node:crypto'
import { secret, sha256 } from './read-config.ts'

/** The hash of the one token that may do everything; the token itself is nowhere. */
export const adminTokenVariable = secret(
  sha256({
    name: 'WEIR_ADMIN_TOKEN_SHA256',
    about: 'hash of the token that may check any subject and read usage; empty for none',
    fallback: '',
  }),
)

/** No key or token is longer; a longer text is not hashed at all. */
const keyLengthMax = 256

/** What a key or token is known by: its SHA-256 in hex. Empty for a text that can be neither. */
export function fingerprint(key: string): string {
  return key === '' || key.length > keyLengthMax ? '' : hash('sha256', key, 'hex')
}

/** What each connection carried last. Nothing is kept of one that has ended. */
const lastCarried = new WeakMap<object, Carried>()

type Make = (text: string) => string

interface Carried {
  readonly text: string
  readonly make: Make
  readonly fingerprint: string
}

/**
 * `make` of a text, once for as long as a connection carries the same: clients send one credential with every request.
 */
export function onceWhileCarried(connection: object, text: string, make: Make): string {
  const last = lastCarried.get(connection)
  if (last !== undefined && last.text === text && last.make === make) return last.fingerprint
  const made = make(text)
  lastCarried.set(connection, { text, make, fingerprint: made })
  return made
}

/** Tells the admin token of now by its fingerprint, in constant time; nobody has it where none is configured. */
export function createAdminCheck(tokenSha256: () => string): (keyFingerprint: string) => boolean {
  return (given) => {
    const expected = tokenSha256()
    if (given === '' || given.length !== expected.length) return false
    return timingSafeEqual(Buffer.from(given, 'latin1'), Buffer.from(expected, 'latin1'))
  }
}
