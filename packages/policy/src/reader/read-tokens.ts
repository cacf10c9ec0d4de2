import { definedFields } from '@weir/core/defined-fields.ts'
import { subjectScopes, type Token, tokenScopes } from '../access-token.ts'
import { subjectPattern, subjectRule } from '../policy-values.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import * as t from './value-types.ts'

/** Tokens are for the people and programs that run Weir, not for its callers. */
const tokensMax = 1_000
/** Each question of such a token names all of them to ClickHouse. */
const subjectsMax = 100

const members = {
  sha256: t.required('SHA-256 of the whole token.', t.sha256('token')),
  scopes: t.required(
    'What the token may do.',
    t.list('a list such as [usage, keys]', t.oneOf(tokenScopes), {
      min: 1,
      wrongCount: () => 'names no scope, so the token could do nothing',
      nameOf: String,
    }),
  ),
  subjects: t.optional(
    `Limits the token to the usage of these subjects; its scopes may then only be ${subjectScopes.join(', ')}.`,
    t.list('a list of subjects such as [acme]', t.matching(subjectRule, subjectPattern), {
      min: 1,
      max: subjectsMax,
      nameOf: String,
      wrongCount: (count) => `names ${count} subjects; a token is limited to 1 to ${subjectsMax}`,
    }),
  ),
  expires: t.optional('Expiry, after which the token is rejected: 2027-01-31T00:00:00Z.', t.time),
}
const limited = { properties: { scopes: { items: { enum: subjectScopes } } } }
const token = t.object('a token', members, t.implies(t.has('subjects'), limited))

const isSubjectScope = (scope: string) => subjectScopes.some((known) => known === scope)

/** The section `tokens`. */
export const tokenEntries = t.entries(token.schema, {
  plural: 'tokens',
  one: 'a token',
  max: tokensMax,
  // What the audit calls the token of the environment.
  reserved: { names: ['root'], message: 'this name is reserved for the token in WEIR_ADMIN_TOKEN_SHA256' },
})

/** The tokens by hash. No two have the same one. */
export function readTokens(reader: PolicyReader, at: SourcePosition): ReadonlyMap<string, Token> {
  const tokens = new Map<string, Token>()
  const positions = new Map<string, SourcePosition>()
  for (const [name, field] of tokenEntries.read(reader, at)) {
    const found = token.find(reader, field)
    const hashAt = found?.fields.get('sha256')
    const { sha256, scopes, subjects, expires } = found?.values ?? {}
    if (found === undefined || hashAt === undefined || sha256 === undefined || scopes === undefined) continue
    const scopesAt = found.fields.get('scopes')
    const tooFar = found.fields.has('subjects') ? scopes.filter((scope) => !isSubjectScope(scope)) : []
    if (scopesAt !== undefined && tooFar.length > 0) {
      const most = `a token with \`subjects\` can only have the scope ${subjectScopes.join(', ')}`
      reader.problem(scopesAt, `${most}, but this one has ${tooFar.join(', ')}`)
    }
    const same = positions.get(sha256)
    if (same !== undefined) reader.problem(hashAt, `this token is also ${reader.where(same)}`)
    positions.set(sha256, hashAt)
    tokens.set(sha256, { name, sha256, scopes, ...definedFields({ subjects, expiresAtMs: expires }) })
  }
  return tokens
}
