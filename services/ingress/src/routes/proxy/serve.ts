import type { Caller } from '@weir/identity/caller.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import type { Route, Subject } from '@weir/policy/policy.ts'
import { badRequest, type Problem } from '@weir/runtime/problem.ts'
import type { DecisionService } from '../../decide/decision-service.ts'
import { degradedBy } from '../../decide/limits/exceeded.ts'
import { FairPlaces, sharerOf } from '../../fair-places.ts'
import { connectionNamed } from '../../http/client-headers.ts'
import { setDecisionHeaders } from '../../http/decision-reply.ts'
import { costBodyBytesMax, encodedBody, jsonCost, longBody } from '../../http/json-cost.ts'
import { readCost } from '../../http/read-cost.ts'
import { recordedMethod } from '../../http/recorded-method.ts'
import type { PolicyView } from '../../policy-view.ts'
import type { Ports } from '../../ports.ts'
import { answerProblem, bodiesBusy, collector, noUpstream, refuse, startHeaders, writeProblem } from './answers.ts'
import { readWhole } from './client-body.ts'
import type { IncomingRequest, ProxiedRequest } from './proxied-request.ts'
import { upstreamBounds } from './upstream-pools.ts'

/** The whole way of a request: authenticate, decide, record, and only then forward. */
export function createServe(
  ports: Ports,
  decisionService: DecisionService,
  forward: (proxied: ProxiedRequest) => void,
): (incoming: IncomingRequest) => Promise<void> {
  const { connectionsMax, waitingMax, subjectShare } = { ...upstreamBounds, ...ports.upstreamBounds }
  /** Bodies up to 64 kB that are being read, before anything is charged: as many as one upstream has places. */
  const reading = new FairPlaces(connectionsMax + waitingMax, subjectShare)

  return async function serve(incoming) {
    const { request, target } = incoming
    const { view } = ports.policy
    const { headers, method = '', url = '', socket } = request
    const hopByHop = connectionNamed(headers.connection)
    const misnamed = view.readHeaders.problemOf(hopByHop)
    if (misnamed !== undefined) return answerProblem(incoming, misnamed)
    const origin = { headers, url, socket }
    const route = view.matchRoute(method, target.path) ?? unmatchedRoute
    if (target.readings !== undefined && mayBeRoute(view, method, [target.path, ...target.readings])) {
      return answerProblem(incoming, oddPathOfRoute)
    }
    const asked = { ip: ports.authenticator.addressOf(view.policy, origin), route, method: recordedMethod(method) }
    const found = ports.authenticator.authenticate(view.policy, origin)
    const caller = found instanceof Promise ? await found : found
    if (caller.kind === 'unauthenticated') {
      const { retryAfterMs, isUnverifiable } = caller
      const recorded = await decisionService.rejectUnauthenticated({ ...asked, retryAfterMs, isUnverifiable })
      return refuse(incoming, recorded, ports)
    }
    const said = readCost(route, origin)
    const { subject, keyId } = caller
    const { cost: wanted, body: readBody } =
      said === 'body' ? await readJsonCost(incoming, route, { reading, subject }) : { cost: said, body: undefined }
    const problem = typeof wanted === 'number' ? undefined : wanted
    if (problem !== undefined && readBody === undefined) return answerProblem(incoming, problem)
    // Where a body was parsed in vain it costs 1: a caller that sends many of those is subject to its limits too.
    const recorded = await decisionService.decide({
      ...asked,
      view,
      subject,
      keyId,
      cost: typeof wanted === 'number' ? wanted : 1,
      named: view.readScopes({ route, path: target.path, headers, url, claims: caller.claims }),
      peek: false,
      idempotencyKey: undefined,
      client: problem === undefined ? incoming.response : undefined,
      reauthenticate: async (live) => callerIn(await ports.authenticator.authenticate(live.policy, origin)),
    })
    if (!recorded.decision.allowed) return refuse(incoming, recorded, ports)
    const ownHeaders = startHeaders(incoming, problem !== undefined)
    setDecisionHeaders(collector(ownHeaders), recorded, ports)
    if (problem !== undefined) return writeProblem(incoming.response, problem, ownHeaders)
    const upstream = view.resolveUpstream(headers.host ?? '', route)
    if (upstream === undefined) return writeProblem(incoming.response, noUpstream, ownHeaders)
    forward({
      ...incoming,
      view,
      route,
      upstream,
      caller,
      hopByHop,
      decisionId: recorded.id ?? '',
      degradedBy: degradedBy(recorded.decision),
      charged: recorded.charged,
      ownHeaders,
      readBody,
    })
  }
}

/** The caller by another policy than the one that the request came under. */
const callerIn = (caller: Caller) => (caller.kind === 'known' ? caller : undefined)

const mayBeRoute = ({ matchRoute }: PolicyView, method: string, paths: readonly string[]) =>
  paths.some((path) => matchRoute(method, path) !== undefined)

const oddPathOfRoute = badRequest(
  'The path has an escaped control character or bytes that are not UTF-8, without which some servers would read it as a route of the policy.',
)

/**
 * Reads the cost that a JSON body says, with the very bytes that were read: those are sent on. `reading` bounds how
 * many bodies are read at the same time.
 */
async function readJsonCost(
  { request, response, mayContinue }: IncomingRequest,
  { costFrom }: Route,
  { reading, subject }: { readonly reading: FairPlaces; readonly subject: Subject },
): Promise<{ readonly cost: number | Problem; readonly body: Buffer | undefined }> {
  const sharer = sharerOf(subject.id)
  // No event would free the place of a client that has left.
  if (request.socket.destroyed || !reading.hasFor(sharer)) return { cost: bodiesBusy, body: undefined }
  let isReading = true
  const leave = () => {
    if (isReading) reading.release(sharer)
    isReading = false
  }
  reading.take(sharer)
  response.once('close', leave)
  mayContinue()
  const encoding = request.headers['content-encoding'] ?? 'identity'
  const isPlain = encoding.toLowerCase() === 'identity'
  const body = isPlain ? await readWhole(request, costBodyBytesMax) : undefined
  leave()
  if (body === undefined) return { cost: isPlain ? longBody : encodedBody, body }
  return { cost: jsonCost(body, costFrom?.kind === 'json' ? costFrom.pointer : ''), body }
}
