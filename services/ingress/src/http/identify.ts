import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { ApiKey, Policy } from '@weir/core/policy/policy.ts'

/** No key is longer; a longer header is not hashed at all. */
const keyLengthMax = 256

/** The credential that a request carries, and the header it came in. `Authorization: Bearer` comes before `X-API-Key`. */
export interface Credential {
  readonly header: 'authorization' | 'x-api-key'
  readonly key: string
}

export function readCredential(headers: IncomingHttpHeaders): Credential | undefined {
  const { authorization, 'x-api-key': apiKey } = headers
  if (authorization !== undefined && /^bearer /i.test(authorization)) {
    return { header: 'authorization', key: authorization.slice(7).trim() }
  }
  if (typeof apiKey === 'string' && apiKey !== '') return { header: 'x-api-key', key: apiKey }
  return undefined
}

/** What a key or token is known by: its SHA-256 in hex. Empty for a text that can be neither. */
export function fingerprint(key: string): string {
  return key === '' || key.length > keyLengthMax ? '' : hash('sha256', key, 'hex')
}

/** The policy's key of this text, found by its hash, so that neither memory nor timing tells a valid one. */
export const findKey = (policy: Policy, key: string): ApiKey | undefined => policy.keys.get(fingerprint(key))

/** Tells the admin token by its fingerprint; nobody has it where none is configured. */
export function createAdminCheck(sha256: string | undefined): (keyFingerprint: string) => boolean {
  if (sha256 === undefined) return () => false
  const expected = Buffer.from(sha256, 'latin1')
  return (given) => given.length === expected.length && timingSafeEqual(Buffer.from(given, 'latin1'), expected)
}
