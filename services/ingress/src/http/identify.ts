import type { IncomingHttpHeaders } from 'node:http'
import type { ApiKey, Policy } from '@weir/core/policy/policy.ts'
import { fingerprint } from '@weir/runtime/admin-token.ts'

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
export const findKey = (policy: Policy, key: string): ApiKey | undefined => policy.keys.get(fingerprint(key))
