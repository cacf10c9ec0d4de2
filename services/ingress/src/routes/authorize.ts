import { normalizePath } from '@weir/core/http/normalize-path.ts'
import { countsInFlight } from '@weir/core/limits/algorithm-facts.ts'
import type { DecisionService } from '@weir/decide/decision-service.ts'
import type { RecordedDecision } from '@weir/decide/types.ts'
import { isTrustedProxy } from '@weir/identity/caller-address.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { badRequest, hasTooManyHeaders, headersTooLarge, type Problem, problem } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { connectionNamed } from '../http/client-headers.ts'
import { denialProblem, isProblem, setDecisionHeaders } from '../http/decision-reply.ts'
import { ownBodyOf, ownRefusalOf, settingsOf, withOwnWords } from '../http/own-refusal.ts'
import { costUnreadable, readCost } from '../http/read-cost.ts'
import { startedAtOf } from '../http/timed-response.ts'
import type { PolicyView } from '../policy-view.ts'
import type { Ports } from '../ports.ts'
import { noOptions, readGatewayOptions, sendCaller, sendRefusal, setOnExceed } from './authorize/gateway.ts'
import { originalRequest } from './authorize/original-request.ts'
import { hasBody } from './proxy/client-body.ts'

/** What gateways accept from their clients, Envoy 60 kB, and the client's path a second time. */
export const askHeaderBytesMax = 81_920

/** The endpoint's address; those below it are the client's. */
export const authorizePath = '/v1/authorize'

/**
 * Makes all addresses under the endpoint's one for the router: the rest of the path is the client's request, which no
 * router may decode, refuse or normalize. The address as it came is `originalUrl` of the request.
 */
export const routerUrl = (url: string): string =>
  url.startsWith(authorizePath) && /^[/?]/.test(url.slice(authorizePath.length)) ? authorizePath : url

/**
 * `/v1/authorize` and all paths below it, for gateways that ask before they forward a request: any method, no body.
 * docs/integrations says what each gateway sends, and what it does with the answer.
 */
export async function addAuthorizeRoute(
  app: FastifyInstance,
  ports: Ports,
  decisionService: DecisionService,
): Promise<void> {
  const authorize = createAuthorize(ports, decisionService)
  await app.register(
    async (scope) => {
      // It is a hook, because that runs before Fastify reads the body: gateways send the client's Content-Type without
      // one.
      scope.addHook('onRequest', authorize)
      const answered = () => undefined
      scope.all('/', answered)
      // Requests with methods that Fastify does not list (PROPFIND, …) come here.
      scope.setNotFoundHandler(answered)
    },
    { prefix: authorizePath },
  )
}

function createAuthorize(ports: Ports, decisionService: DecisionService) {
  return async function authorize(request: FastifyRequest, reply: FastifyReply) {
    // The body is not read: on a kept connection the next request would be read as a body that never came.
    if (hasBody(request.raw)) reply.header('connection', 'close')
    const asked = readQuestion(ports.policy.view, request)
    if ('problem' in asked) return sendRefusal(reply, asked.options, asked.problem)
    const { view, method, url, path, options } = asked
    const { rawHeaders } = request.raw
    const route = view.matchRoute(method, path) ?? unmatchedRoute
    const origin = { headers: request.headers, url, socket: request.raw.socket }
    const ip = ports.authenticator.addressOf(view.policy, origin)
    const startedAt = startedAtOf(reply.raw)
    const trace = ports.traces?.begin(origin, view.policy)
    trace?.startHttp(request.method, authorizePath, startedAt, reply.raw)
    const who = { entryPoint: 'authorize', startedAt, ip, route, method, trace: trace?.decision() } as const
    const refuse = (recorded: RecordedDecision) => {
      const own = ownRefusalOf(recorded, route, view.policy)
      setDecisionHeaders(reply, recorded, settingsOf(ports, own))
      setOnExceed(reply, recorded)
      const denial = denialProblem(reply, recorded, ports)
      const refusal = recorded.isKnownRefusal === true ? refusedUnrecorded(denial) : denial
      // A gateway that fails open serves what is answered with 5xx: no status of the policy makes it that.
      const mayHaveStatus = refusal.status >= 500 || (own?.status ?? 0) < 500
      reply.headers(own?.setHeaders ?? {})
      return sendRefusal(reply, options, mayHaveStatus ? withOwnWords(refusal, own) : refusal, ownBodyOf(recorded, own))
    }
    const found = ports.authenticator.authenticate(view.policy, origin)
    const caller = found instanceof Promise ? await found : found
    if (caller.kind === 'unauthenticated') {
      // Also for a token that cannot be verified now: a gateway that fails open serves what is answered with 5xx.
      const retryAfterMs = caller.isUnverifiable === true ? 0 : caller.retryAfterMs
      return refuse(await decisionService.rejectUnauthenticated({ ...who, retryAfterMs }))
    }
    if (view.hasSlots && view.resolveLimits(caller.subject, route).some(countsInFlight)) {
      return sendRefusal(reply, options, slotsUnsupported)
    }
    const cost = readCost(route, origin)
    if (typeof cost !== 'number') return sendRefusal(reply, options, cost === 'body' ? costInBody : cost)
    const { subject, keyId } = caller
    const recorded = await decisionService.decide({
      ...who,
      view,
      subject,
      keyId,
      cost,
      peek: false,
      named: view.readScopes({ route, path, headers: request.headers, rawHeaders, url, claims: caller.claims }),
      idempotencyKey: options.requestId === undefined ? undefined : `gateway ${options.requestId}`,
    })
    if (!recorded.decision.allowed) return refuse(recorded)
    setDecisionHeaders(reply, recorded, ports)
    return sendCaller(reply, caller, recorded)
  }
}

/**
 * Reads the client's request and the gateway's options out of what the gateway sent. `url` are path and query as the
 * client sent them; `path` is what routes are matched by.
 */
function readQuestion(view: PolicyView, request: FastifyRequest) {
  const { method, headers, socket } = request.raw
  const behind = request.originalUrl.slice(authorizePath.length)
  const rest = behind.startsWith('/') ? behind : ''
  const isTrusted = () => isTrustedProxy(socket, view.policy.identity)
  const original = originalRequest({ method: method ?? '', rest, headers }, isTrusted, socket.remoteAddress)
  // Behind a path the query is the client's.
  const query = rest === '' ? behind.slice(1) : ''
  const options = readGatewayOptions(query, isProblem(original) ? '' : original.url)
  if (isProblem(options)) return { options: noOptions, problem: options }
  const unreadable = (why: Problem) => ({ options, problem: why })
  if (hasTooManyHeaders(request.raw)) return unreadable(headersTooLarge(askHeaderBytesMax))
  const misnamed = view.readHeaders.problemOf(connectionNamed(headers.connection))
  if (misnamed !== undefined) return unreadable(misnamed)
  if (isProblem(original)) return unreadable(original)
  const { url } = original
  const rawPath = url.split('?', 1)[0] ?? ''
  const normal = normalizePath(rawPath)
  if (normal.kind === 'refused') return unreadable(badRequest(`The path ${normal.why}.`))
  if (dotSegment.test(rawPath)) return unreadable(badRequest('The path has . or .. segments.'))
  return { view, method: original.method, url, path: normal.path, options }
}

/**
 * The gateway forwards the path as it came, where Weir's proxy would forward the normal form. Upstreams do not agree on
 * what `/dear/../cheap` is, so it is refused.
 */
const dotSegment = /\/(?:\.|%2e){1,2}(?:\/|$)/i

/** The answer to a denial without a record: a gateway that fails open would serve what is answered with 5xx. */
const refusedUnrecorded = (refusal: Problem): Problem => ({
  ...refusal,
  status: 429,
  detail: 'The request was refused, but the refusal could not be recorded. Try again later.',
})

/** A gateway that asks whether it may does not say when it has done. */
const slotsUnsupported = problem(
  'concurrency-unsupported',
  'Concurrency limits are not supported here',
  501,
  'A concurrency limit applies to this request, but a gateway that calls /v1/authorize cannot report when the request ends. Use the proxy, the check API or gRPC, or remove the limit from this route and plan.',
)

const costInBody = costUnreadable(
  "This route's cost is in the request's body, which gateways do not send here. Give it by a header or a query parameter, or put the proxy in front.",
)
