import { randomBytes } from 'node:crypto'
import { fingerprint } from '@weir/runtime/admin-token.ts'

/** Too many to guess, so that the hash needs neither salt nor slowness. */
const secretBytes = 32

/** Makes a secret and the hash that is stored; the prefix lets people and scanners recognize a leaked secret. */
export function makeCredential(prefix: 'weir_' | 'weir_token_'): { readonly secret: string; readonly sha256: string } {
  const secret = `${prefix}${randomBytes(secretBytes).toString('base64url')}`
  return { secret, sha256: fingerprint(secret) }
}
