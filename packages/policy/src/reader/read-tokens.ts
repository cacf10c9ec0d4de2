import { type Token, type TokenScope, tokenScopes } from '../policy.ts'
import { nameRule, parseName, parseSha256 } from '../policy-values.ts'
import type { Field, Place, PolicyReader } from './policy-reader.ts'

/** Tokens are for the people and programs that run Weir, not for its callers. */
const tokensMax = 1_000
/** What the audit calls the token of the environment. */
const reservedName = 'root'

/** The tokens by hash. No two have the same one. */
export function readTokens(reader: PolicyReader, place: Place): ReadonlyMap<string, Token> {
  const entries = reader.map(place, 'a map of tokens by name') ?? new Map<string, Field>()
  if (entries.size > tokensMax) reader.problem(place, `has ${entries.size} tokens; a policy has at most ${tokensMax}`)
  const tokens = new Map<string, Token>()
  const places = new Map<string, Place>()
  for (const [name, field] of [...entries].slice(0, tokensMax)) {
    if (parseName(name) === undefined) reader.problemAtKey(field, `the name of a token must be ${nameRule}`)
    if (name === reservedName) reader.problemAtKey(field, 'this name is that of the token in WEIR_ADMIN_TOKEN_SHA256')
    const fields = reader.fields(field, 'a token', ['sha256', 'scopes'], ['sha256', 'scopes'])
    const [hashAt, scopesAt] = [fields?.get('sha256'), fields?.get('scopes')]
    const what = 'the SHA-256 of a token in 64 hex digits (never the token itself)'
    const sha256 = hashAt === undefined ? undefined : reader.secretText(hashAt, what, parseSha256)
    const scopes = scopesAt === undefined ? undefined : readScopes(reader, scopesAt)
    if (hashAt === undefined || sha256 === undefined || scopes === undefined) continue
    const same = places.get(sha256)
    if (same !== undefined) reader.problem(hashAt, `the same token is on line ${reader.lineOf(same)}`)
    places.set(sha256, hashAt)
    tokens.set(sha256, { name, sha256, scopes })
  }
  return tokens
}

function readScopes(reader: PolicyReader, field: Field): readonly TokenScope[] | undefined {
  const items = reader.list(field, 'a list such as [usage, keys]')
  if (items === undefined) return undefined
  if (items.length === 0) return reader.problem(field, `names no scope: the token could do nothing`)
  const scopes = new Set<TokenScope>()
  for (const item of items) {
    const scope = reader.oneOf(item, tokenScopes)
    if (scope === undefined) continue
    if (scopes.has(scope)) reader.problem(item, `${scope} is named twice`)
    scopes.add(scope)
  }
  return [...scopes]
}
