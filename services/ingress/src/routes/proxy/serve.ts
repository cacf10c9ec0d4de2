import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import type { Route, Subject } from '@weir/policy/policy.ts'
import type { DecisionService } from '../../decide/decision-service.ts'
import { degradedBy } from '../../decide/limits/exceeded.ts'
import { FairPlaces, sharerOf } from '../../fair-places.ts'
import type { Caller } from '../../http/identity/caller.ts'
import { readCost } from '../../http/read-cost.ts'
import { recordedMethod } from '../../http/recorded-method.ts'
import { setVerdictHeaders } from '../../http/verdict-reply.ts'
import type { PolicyView } from '../../policy-view.ts'
import type { Ports } from '../../ports.ts'
import type { Arrival } from './arrival.ts'
import type { PassOn } from './pass-on.ts'
import { badRequest, bodiesBusy, writeProblem } from './problems.ts'
import { readJsonCost } from './read-json-cost.ts'
import { answerProblem, collector, type IsClosing, refuse, startHeaders } from './refuse.ts'
import { connectionNamed } from './request-headers.ts'
import { upstreamBounds } from './upstream-pools.ts'

/** The whole of it: identify, decide, record, and only then pass on. */
export function createServe(
  ports: Ports,
  decisionService: DecisionService,
  { passOn }: Pick<PassOn, 'passOn'>,
): (arrival: Arrival, isClosing: IsClosing) => Promise<void> {
  const { connectionsMax, waitingMax, subjectShare } = { ...upstreamBounds, ...ports.upstreamBounds }
  /** Of bodies up to 64 kB, charged only when they have come: as many as one upstream has places. */
  const reading = new FairPlaces(connectionsMax + waitingMax, subjectShare)

  return async function serve(arrival, isClosing) {
    const { request, target } = arrival
    const { view } = ports.policy
    const { headers, method = '', url = '', socket } = request
    const hopByHop = connectionNamed(headers.connection)
    const misnamed = view.readHeaders.problemOf(hopByHop)
    if (misnamed !== undefined) return answerProblem(arrival, isClosing, misnamed)
    const origin = { headers, url, socket }
    const route = view.matchRoute(method, target.path) ?? unmatchedRoute
    if (target.readings !== undefined && mayBeRoute(view, method, [target.path, ...target.readings])) {
      return answerProblem(arrival, isClosing, oddPathOfRoute)
    }
    const asked = { ip: ports.authenticator.addressOf(view, origin), route, method: recordedMethod(method) }
    const found = ports.authenticator.authenticate(view, origin)
    const caller = found instanceof Promise ? await found : found
    if (caller.kind === 'unauthenticated') {
      const { retryAfterMs, isUnverifiable } = caller
      const verdict = await decisionService.rejectUnauthenticated({ ...asked, retryAfterMs, isUnverifiable })
      return refuse(arrival, isClosing, verdict, ports)
    }
    const said = readCost(route, origin)
    const { subject, keyId } = caller
    const costed =
      said === 'body' ? await readBodyCost(arrival, route, { reading, subject }) : { cost: said, body: undefined }
    const { body: readBody } = costed
    const problem = typeof costed.cost === 'number' ? undefined : costed.cost
    if (problem !== undefined && readBody === undefined) return answerProblem(arrival, isClosing, problem)
    // A body was parsed in vain: a caller that sends many of those is held back by its limits too.
    const cost = typeof costed.cost === 'number' ? costed.cost : 1
    const named = view.requestScopes(headers, url)
    const known = { ...asked, view, subject, keyId, cost, named }
    const verdict = await decisionService.decide({
      ...{
        ...known,
        peek: false,
        idempotencyKey: undefined,
        client: problem === undefined ? arrival.response : undefined,
      },
      reauthenticate: async (live) => callerIn(await ports.authenticator.authenticate(live, origin)),
    })
    if (!verdict.decision.allowed) return refuse(arrival, isClosing, verdict, ports)
    const ownHeaders = startHeaders(arrival, isClosing, problem !== undefined)
    setVerdictHeaders(collector(ownHeaders), verdict, ports)
    if (problem !== undefined) return writeProblem(arrival.response, problem, ownHeaders)
    passOn({
      ...arrival,
      view,
      route,
      caller,
      hopByHop,
      decisionId: verdict.id ?? '',
      degradedBy: degradedBy(verdict.decision),
      charged: verdict.charged,
      ownHeaders,
      readBody,
    })
  }
}

/** Who it is by another policy than the one that the request came under. */
const callerIn = (caller: Caller) => (caller.kind === 'known' ? caller : undefined)

/** The cost that a body says, with the very bytes that were read: those are sent on. */
async function readBodyCost(
  { request, response, mayContinue }: Arrival,
  { costFrom }: Route,
  { reading, subject }: { readonly reading: FairPlaces; readonly subject: Subject },
) {
  const sharer = sharerOf(subject.id)
  // Of a client that has gone nothing would tell that its place is free again.
  if (request.socket.destroyed || !reading.hasFor(sharer)) return { cost: bodiesBusy, body: undefined }
  let isReading = true
  const leave = () => {
    if (isReading) reading.giveBack(sharer)
    isReading = false
  }
  reading.take(sharer)
  response.once('close', leave)
  mayContinue()
  const read = await readJsonCost(request, costFrom?.kind === 'json' ? costFrom.pointer : '')
  leave()
  return read
}

const mayBeRoute = ({ matchRoute }: PolicyView, method: string, paths: readonly string[]) =>
  paths.some((path) => matchRoute(method, path) !== undefined)

const oddPathOfRoute = badRequest(
  'The path has an escaped control character or bytes that are not UTF-8, without which some servers would read it as a route of the policy.',
)
