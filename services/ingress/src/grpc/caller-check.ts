import { status } from '@grpc/grpc-js'
import { createAdminCheck, fingerprint } from '@weir/runtime/admin-token.ts'
import type { PolicyView } from '../policy-view.ts'
import type { Ports } from '../ports.ts'
import type { CallerCheck } from './rate-limit-service.ts'

/**
 * Who may ask about anybody: a token with the scope check, as `authorization: Bearer TOKEN` in the call's metadata. Where none is
 * required, because only this machine can call, a call without any is taken; a wrong one is refused all the same.
 */
export function createCallerCheck(
  { policy, grpcNeedsNoToken = false }: Pick<Ports, 'policy' | 'grpcNeedsNoToken'>,
  adminTokenSha256: () => string,
): CallerCheck {
  const isRoot = createAdminCheck(adminTokenSha256)
  /** What came last and may ask, under the policy and admin token by which it may: gateways send one token with every call. */
  let good: { readonly text: string; readonly view: PolicyView; readonly root: string } | undefined
  return function mayAsk(authorization) {
    const { view } = policy
    if (authorization === '') return grpcNeedsNoToken ? undefined : missing
    const root = adminTokenSha256()
    if (good?.text === authorization && good.view === view && good.root === root) return undefined
    const hash = /^bearer /i.test(authorization) ? fingerprint(authorization.slice(7).trim()) : ''
    const token = hash === '' ? undefined : view.policy.tokens.get(hash)
    if (!isRoot(hash) && token === undefined) return unknown
    if (token !== undefined && !token.scopes.some((scope) => scope === 'check' || scope === 'admin')) {
      return { code: status.PERMISSION_DENIED, details: `The token ${token.name} lacks the scope check.` }
    }
    good = { text: authorization, view, root }
    return undefined
  }
}

const missing = {
  code: status.UNAUTHENTICATED,
  details: 'Send a token with the scope check in the metadata of the call: authorization: Bearer TOKEN.',
}
const unknown = {
  code: status.UNAUTHENTICATED,
  details: 'The token in the metadata authorization is no token of this Weir.',
}
