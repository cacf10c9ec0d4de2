import type { Policy, Token } from '@weir/policy/policy.ts'
import { createAdminCheck } from '@weir/runtime/admin-token.ts'

/**
 * Makes the check of tokens that may check any subject: the admin token, and those of the policy with the scope `check`
 * or `admin`. `hashOf` reads the fingerprint of a token out of what its `carrier`, say a connection, sent; empty for
 * none.
 */
export function createTokenCheck(
  adminTokenSha256: () => string,
  hashOf: (sent: string, carrier: object) => string,
): (policy: Policy, sent: string, carrier: object) => 'authorized' | 'unknown' | Token {
  const isRoot = createAdminCheck(adminTokenSha256)
  /** The last authorized token of each carrier, with the policy and the admin token that authorized it. */
  const authorized = new WeakMap<object, { readonly sent: string; readonly policy: Policy; readonly root: string }>()

  return function checkToken(policy, sent, carrier) {
    const root = adminTokenSha256()
    const last = authorized.get(carrier)
    if (last !== undefined && last.sent === sent && last.policy === policy && last.root === root) return 'authorized'
    const hash = hashOf(sent, carrier)
    const token = hash === '' ? undefined : policy.tokens.get(hash)
    if (!isRoot(hash) && !token?.scopes.some((scope) => scope === 'check' || scope === 'admin')) {
      return token ?? 'unknown'
    }
    authorized.set(carrier, { sent, policy, root })
    return 'authorized'
  }
}
