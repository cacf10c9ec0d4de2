import type { Clock } from '@weir/core/clock.ts'
import { type Token, tokenInForce } from '@weir/policy/access-token.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { createAdminCheck } from '@weir/runtime/admin-token.ts'

/**
 * Makes the check of tokens that may check any subject: the admin token, and those of the policy with the scope `check`
 * or `admin`. `hashOf` reads the fingerprint of a token out of what its `carrier`, say a connection, sent; empty for
 * none.
 */
export function createTokenCheck(
  adminTokenSha256: () => string,
  hashOf: (sent: string, carrier: object) => string,
  clock: Clock,
): (policy: Policy, sent: string, carrier: object) => 'authorized' | 'unknown' | Token {
  const isRoot = createAdminCheck(adminTokenSha256)
  /** The last authorized token of each carrier, with the policy and the admin token that authorized it. */
  const authorized = new WeakMap<
    object,
    { readonly sent: string; readonly policy: Policy; readonly root: string; readonly untilMs: number }
  >()

  return function checkToken(policy, sent, carrier) {
    const root = adminTokenSha256()
    const last = authorized.get(carrier)
    if (last !== undefined && last.sent === sent && last.policy === policy && last.root === root) {
      // Few tokens have an end: only theirs needs the time.
      if (last.untilMs === Number.POSITIVE_INFINITY || clock.nowMs() < last.untilMs) return 'authorized'
    }
    const hash = hashOf(sent, carrier)
    const token = tokenInForce(policy, hash, clock.nowMs())
    if (!isRoot(hash) && !token?.scopes.some((scope) => scope === 'check' || scope === 'admin')) {
      return token ?? 'unknown'
    }
    authorized.set(carrier, { sent, policy, root, untilMs: token?.expiresAtMs ?? Number.POSITIVE_INFINITY })
    return 'authorized'
  }
}
