import { status } from '@grpc/grpc-js'
import { createAdminCheck, fingerprint } from '@weir/runtime/admin-token.ts'
import type { PolicyView } from '../policy-view.ts'
import type { Ports } from '../ports.ts'
import type { CallAuthorizer } from './rate-limit-service.ts'

/**
 * Authorizes gateways: a token with the scope check may check any subject, as `authorization: Bearer TOKEN` in the
 * call's metadata. Where none is required, because only this machine can call, a call without one is accepted; a wrong
 * one is not.
 */
export function createCallAuthorizer(
  { policy, grpcNeedsNoToken = false }: Pick<Ports, 'policy' | 'grpcNeedsNoToken'>,
  adminTokenSha256: () => string,
): CallAuthorizer {
  const isRoot = createAdminCheck(adminTokenSha256)
  /**
   * The last authorized token, with the policy and the admin token that authorized it: gateways send one with every
   * call.
   */
  let good: { readonly text: string; readonly view: PolicyView; readonly root: string } | undefined
  return function authorizeCall(authorization) {
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
