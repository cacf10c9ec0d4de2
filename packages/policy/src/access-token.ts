/** What a token for the check API and the admin API may do. `admin` may do everything, tokens included. */
export const tokenScopes = ['check', 'usage', 'billing', 'read', 'write', 'keys', 'limits', 'admin'] as const
/** One right of a token. */
export type TokenScope = (typeof tokenScopes)[number]

/** What a token that is limited to subjects may have: what reads no more than those subjects. */
export const subjectScopes = ['usage'] as const satisfies readonly TokenScope[]

/** A credential for the check API of any subject, and for the admin API. The token itself is not stored. */
export interface Token {
  readonly name: string
  readonly sha256: string
  readonly scopes: readonly TokenScope[]
  /** It reads the usage of these subjects, and nothing else; never empty. Absent: it is not limited to subjects. */
  readonly subjects?: readonly string[] | undefined
  /** From then on the token is not accepted, in milliseconds since the epoch; absent for never. */
  readonly expiresAtMs?: number | undefined
}

/** Returns the token of this hash, unless it has expired. */
export function tokenInForce(
  { tokens }: { readonly tokens: { get(sha256: string): Token | undefined } },
  sha256: string,
  nowMs: number,
): Token | undefined {
  const token = sha256 === '' ? undefined : tokens.get(sha256)
  return token?.expiresAtMs !== undefined && nowMs >= token.expiresAtMs ? undefined : token
}
