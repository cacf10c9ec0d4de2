import type { DecisionService } from '@weir/decide/decision-service.ts'
import type { DecisionView } from '@weir/decide/decision-view.ts'
import type { UnauthenticatedRequest } from '@weir/decide/types.ts'
import type { Caller, Claims } from '@weir/identity/caller.ts'
import { keyTextOf } from '@weir/identity/credential.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import type { Subject } from '@weir/policy/policy.ts'
import { fingerprint, onceWhileCarried } from '@weir/runtime/admin-token.ts'
import { type Problem, problem, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { createTokenCheck } from '../../http/check-token.ts'
import { denialProblem, setDecisionHeaders } from '../../http/decision-reply.ts'
import { startedAtOf } from '../../http/timed-response.ts'
import type { PolicyView } from '../../policy-view.ts'
import type { Ports } from '../../ports.ts'
import { batchPath } from './check-paths.ts'

/** The authorized caller of a check: a token may check any subject, a subject's own credential only that subject. */
export type CheckPrincipal =
  | { readonly kind: 'token' }
  | {
      readonly kind: 'subject'
      readonly subject: Subject
      readonly keyId: string
      /** Of its token, if that is what it asks with. */
      readonly claims: Claims | undefined
      /** The address of its connection, as limits count it. */
      readonly ip: string
      /** Authenticates the credential by a later policy; undefined once it is no valid one. */
      readonly reauthenticate: (
        view: DecisionView,
      ) => Promise<{ readonly subject: Subject; readonly keyId: string } | undefined>
    }

interface AuthorizedCheck {
  readonly view: PolicyView
  readonly principal: CheckPrincipal
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The principal of a check, and the policy that authorized it; null elsewhere. */
    check: AuthorizedCheck | null
  }
}

const byToken: CheckPrincipal = { kind: 'token' }

const scopeMissing = (name: string): Problem => ({
  ...problem('scope-missing', 'Forbidden', 403, `The token ${name} lacks the \`check\` scope.`),
  scope: 'check',
})

type Refused = Pick<UnauthenticatedRequest, 'retryAfterMs' | 'isUnverifiable'>

/**
 * Authorizes the caller before the body is read: the body of an unauthenticated check is not even parsed. Tokens come
 * first, because to the authenticator they would be wrong keys. Callers without a credential of their own may not
 * check.
 */
export function createCallerAuthorizer(ports: Ports, decisionService: DecisionService, adminTokenSha256: () => string) {
  const hashOf = (text: string, socket: object) => onceWhileCarried(socket, text, fingerprint)
  const checkToken = createTokenCheck(adminTokenSha256, hashOf, ports.clock)

  const refuse = async (view: PolicyView, request: FastifyRequest, reply: FastifyReply, why: Refused) => {
    const ip = ports.authenticator.addressOf(view.policy, origin(request))
    const entryPoint = request.url === batchPath ? 'batch' : 'check'
    const from = { entryPoint, startedAt: startedAtOf(reply.raw) } as const
    const asked = { ...from, ip, route: unmatchedRoute, method: request.method }
    const { retryAfterMs, isUnverifiable } = why
    const recorded = await decisionService.rejectUnauthenticated({ ...asked, retryAfterMs, isUnverifiable })
    setDecisionHeaders(reply, recorded, ports)
    sendProblem(reply, denialProblem(reply, recorded))
  }

  return function authorizeCaller(request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
    const { view } = ports.policy
    const token = checkToken(view.policy, keyTextOf(request.headers), request.raw.socket)
    if (token === 'authorized') {
      request.check = { view, principal: byToken }
      done()
      return
    }
    if (token !== 'unknown') {
      sendProblem(reply, scopeMissing(token.name))
      return
    }
    const settle = (caller: Caller): void | Promise<void> => {
      if (caller.kind === 'unauthenticated') return refuse(view, request, reply, caller)
      if (caller.carriedIn === undefined) return refuse(view, request, reply, { retryAfterMs: 0 })
      const ip = ports.authenticator.addressOf(view.policy, origin(request))
      const reauthenticate = async (live: DecisionView) => {
        const again = await ports.authenticator.authenticate(live.policy, origin(request))
        return again.kind === 'known' && again.carriedIn !== undefined ? again : undefined
      }
      const { subject, keyId, claims } = caller
      request.check = { view, principal: { kind: 'subject', subject, keyId, claims, ip, reauthenticate } }
      done()
    }
    const found = ports.authenticator.authenticate(view.policy, origin(request))
    const settled = found instanceof Promise ? found.then(settle) : settle(found)
    // A rejection that nothing handles would leave the caller without an answer, and end the process.
    if (settled instanceof Promise) settled.catch(done)
  }
}

const origin = ({ headers, originalUrl, raw }: FastifyRequest) => ({ headers, url: originalUrl, socket: raw.socket })

/** The hook that authorizes the caller of a check. */
export type CallerAuthorizer = ReturnType<typeof createCallerAuthorizer>

/** What authorized a check: its request has that from its hook on. */
export function authorizedCheck({ check }: FastifyRequest): AuthorizedCheck {
  if (check === null) throw new TypeError('a check without a principal')
  return check
}
