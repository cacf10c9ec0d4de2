import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { ApiKey, Policy } from '@weir/policy/policy.ts'
import { fingerprint, onceWhileCarried } from '@weir/runtime/admin-token.ts'
import type { CredentialLocation } from './caller.ts'
import type { IdentityRules } from './identity-rules.ts'

/** Tokens with many claims have 2 to 4 kB; a longer text is neither hashed nor parsed. */
const tokenLengthMax = 8_192

/** What a request carries to authenticate its caller. */
export interface Credential {
  readonly location: CredentialLocation
  readonly text: string
  /** It came as a Bearer, has the form of a signed token, and nothing else may be a key. */
  readonly mayBeToken: boolean
}

/** Where signed tokens are. */
export const bearerToken: CredentialLocation = { kind: 'header', name: 'authorization' }

/**
 * The one credential that decides: the first key in the policy's order of headers, then in the query, then a token. A
 * Bearer that looks like a token is no key as long as something else is. An empty header carries nothing; a parameter
 * that comes twice carries a key that belongs to no subject.
 */
export function credentialOf(rules: IdentityRules, headers: IncomingHttpHeaders, url: string): Credential | undefined {
  const hasIssuers = rules.issuers.size > 0
  for (const location of rules.keyHeaders) {
    const { name } = location
    const value = headers[name]
    if (typeof value !== 'string' || value === '') continue
    if (name !== 'authorization') return { location, text: value, mayBeToken: false }
    const text = bearerOf(value)
    if (text === undefined || (hasIssuers && looksSigned(text))) continue
    return { location, text, mayBeToken: false }
  }
  if (rules.keyQuery !== undefined) {
    const text = queryValue(url, rules.keyQuery.name)
    if (text !== undefined) return { location: rules.keyQuery, text, mayBeToken: false }
  }
  if (!hasIssuers || headers.authorization === undefined) return undefined
  const text = bearerOf(headers.authorization)
  return text === undefined ? undefined : { location: bearerToken, text, mayBeToken: looksSigned(text) }
}

/**
 * Undefined for other schemes of `Authorization`: those are between the caller and the upstream. Empty, which is no
 * key, where a Bearer follows one of them in a second header.
 */
function bearerOf(authorization: string): string | undefined {
  if (/^bearer(?: |$)/i.test(authorization)) return authorization.slice(7).trim()
  return /, bearer(?: |$)/i.test(authorization) ? '' : undefined
}

/** Three parts with dots between, of which the first is a JSON object in base64url: the form of a signed JWT. */
function looksSigned(text: string): boolean {
  if (!text.startsWith('eyJ')) return false
  const second = text.indexOf('.', text.indexOf('.') + 1)
  return second !== -1 && text.indexOf('.') !== second && text.indexOf('.', second + 1) === -1
}

/** The value of a parameter by its decoded name; empty, which is no subject's key, when it comes twice. */
function queryValue(url: string, name: string): string | undefined {
  const start = url.indexOf('?')
  if (start === -1) return undefined
  const values = new URLSearchParams(url.slice(start)).getAll(name)
  return values.length > 1 ? '' : values[0]
}

/** What a credential is known by: its SHA-256 in hex. Empty for a text that can be none. */
export const fingerprintOf = ({ text, mayBeToken }: Credential, socket: Socket): string =>
  onceWhileCarried(socket, text, mayBeToken ? tokenFingerprint : fingerprint)

const tokenFingerprint = (text: string) => (text.length > tokenLengthMax ? '' : hash('sha256', text, 'hex'))

/** The text of a key in `Authorization: Bearer`, else in `X-API-Key`; empty for none. */
export function keyTextOf({ authorization, 'x-api-key': apiKey }: IncomingHttpHeaders): string {
  const bearer = authorization === undefined ? undefined : bearerOf(authorization)
  return bearer ?? (typeof apiKey === 'string' ? apiKey : '')
}

/** The policy's key of this hash, unless it has expired. */
export function keyInForce(policy: Policy, hash: string, nowMs: number): ApiKey | undefined {
  const key = hash === '' ? undefined : policy.keys.get(hash)
  return key === undefined || (key.expiresAtMs !== undefined && nowMs >= key.expiresAtMs) ? undefined : key
}

/** The same for the text of a key. It is found by its hash, so that neither memory nor timing reveals a valid one. */
export const findKey = (policy: Policy, key: string, nowMs: number): ApiKey | undefined =>
  keyInForce(policy, fingerprint(key), nowMs)
