import { type Token, tokenScopes } from '../policy.ts'
import { parseSha256, sha256Pattern } from '../policy-values.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import * as t from './value-types.ts'

/** Tokens are for the people and programs that run Weir, not for its callers. */
const tokensMax = 1_000
const hashRule = 'the SHA-256 of a token in 64 hex digits (never the token itself)'

const token = t.object('a token', {
  sha256: t.required(
    'SHA-256 of the whole token.',
    t.secretText(hashRule, parseSha256, { pattern: sha256Pattern.source }),
  ),
  scopes: t.required(
    'What it may do.',
    t.list('a list such as [usage, keys]', t.oneOf(tokenScopes), {
      min: 1,
      wrongCount: () => 'names no scope: the token could do nothing',
      nameOf: String,
    }),
  ),
})

/** The section `tokens`. */
export const tokenEntries = t.entries(token.schema, {
  plural: 'tokens',
  one: 'a token',
  max: tokensMax,
  // What the audit calls the token of the environment.
  reserved: { names: ['root'], message: 'this name is that of the token in WEIR_ADMIN_TOKEN_SHA256' },
})

/** The tokens by hash. No two have the same one. */
export function readTokens(reader: PolicyReader, at: SourcePosition): ReadonlyMap<string, Token> {
  const tokens = new Map<string, Token>()
  const positions = new Map<string, SourcePosition>()
  for (const [name, field] of tokenEntries.read(reader, at)) {
    const found = token.find(reader, field)
    const hashAt = found?.fields.get('sha256')
    const { sha256, scopes } = found?.values ?? {}
    if (hashAt === undefined || sha256 === undefined || scopes === undefined) continue
    const same = positions.get(sha256)
    if (same !== undefined) reader.problem(hashAt, `the same token is ${reader.where(same)}`)
    positions.set(sha256, hashAt)
    tokens.set(sha256, { name, sha256, scopes })
  }
  return tokens
}
