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

/** The policy's key of this text, found by its hash, so that neither memory nor timing tells a valid one. */
export function findKey(policy: Policy, key: string): ApiKey | undefined {
  if (key === '' || key.length > keyLengthMax) return undefined
  return policy.keys.get(hash('sha256', key, 'hex'))
}

/** Whether this is the token with that SHA-256; never without one configured. */
export function isAdminToken(key: string, sha256: string | undefined): boolean {
  if (sha256 === undefined || key === '' || key.length > keyLengthMax) return false
  return timingSafeEqual(hash('sha256', key, 'buffer'), Buffer.from(sha256, 'hex'))
}
