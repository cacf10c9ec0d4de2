import type { DecisionService } from '@weir/decide/decision-service.ts'
import { FairSlots } from '@weir/decide/fair-slots.ts'
import { degradedBy } from '@weir/decide/limits/exceeded.ts'
import type { RecordedDecision } from '@weir/decide/types.ts'
import type { Caller } from '@weir/identity/caller.ts'
import type { RequestMeasure } from '@weir/meters/measure-request.ts'
import { connectionNamed } from '../../http/client-headers.ts'
import { collector, isProblem, setDecisionHeaders } from '../../http/decision-reply.ts'
import { readCost } from '../../http/read-cost.ts'
import { recordedMethod } from '../../http/recorded-method.ts'
import type { Ports } from '../../ports.ts'
import { answerProblem, refuse, startHeaders, writeProblem } from './answers.ts'
import { BodyMemory } from './body-memory.ts'
import { matchTarget } from './match-target.ts'
import { createMeter } from './meter.ts'
import { meteredExchange } from './metered-exchange.ts'
import type { IncomingRequest, ProxiedRequest } from './proxied-request.ts'
import { countedPointers, readBody, unread } from './read-body.ts'
import { formOf } from './supplier-refusal.ts'
import { upstreamBounds } from './upstream-pools.ts'

/** The whole way of a request: authenticate, decide, record, and only then forward. */
export function createServe(
  ports: Ports,
  decisionService: DecisionService,
  forward: (proxied: ProxiedRequest) => void,
): (incoming: IncomingRequest) => Promise<void> {
  const bodies = openBodies(ports)
  const { choose, meter } = createMeter(ports)

  return async function serve(incoming) {
    const { request, response, target, startedAt } = incoming
    const { view } = ports.policy
    const { headers, rawHeaders, method = '', url = '', socket } = request
    const hopByHop = connectionNamed(headers.connection)
    const misnamed = view.readHeaders.problemOf(hopByHop)
    if (misnamed !== undefined) return answerProblem(incoming, misnamed)
    const origin = { headers, url, socket }
    const matched = matchTarget(view, method, headers, target)
    if (isProblem(matched)) return answerProblem(incoming, matched)
    const { route, matchedPath } = matched
    const ip = ports.authenticator.addressOf(view.policy, origin)
    const recordedAs = recordedMethod(method)
    const trace = ports.traces?.begin(origin, view.policy)?.startHttp(recordedAs, route.template, startedAt, response)
    const asked = { entryPoint: 'proxy', startedAt, ip, route, method: recordedAs, trace: trace?.decision() } as const
    const refused = (by: RecordedDecision, of?: RequestMeasure) => refuse(incoming, by, ports, view, route, of)
    const found = ports.authenticator.authenticate(view.policy, origin)
    const caller = found instanceof Promise ? await found : found
    if (caller.kind === 'unauthenticated') {
      return refused(await decisionService.rejectUnauthenticated({ ...asked, ...caller }))
    }
    const said = readCost(route, origin)
    if (typeof said === 'object') return answerProblem(incoming, said)
    const { subject, keyId, claims } = caller
    const pointers = countedPointers(view.bodyPointers(subject, route), request)
    const reader = view.meterOf(route)
    const isRead = said === 'body' || pointers !== undefined || reader !== undefined
    const read = isRead ? await readBody(incoming, { view, subject, route, pointers, reader }, bodies) : unread
    if (isProblem(read)) return answerProblem(incoming, read, formOf(view, request, route))
    // Where a body was parsed in vain it costs 1: a caller that sends many of those is subject to its limits too.
    const cost = said === 'body' ? (read.cost ?? 1) : said
    const metering = reader && read.measure && meter(incoming, view, { subject, route, cost }, reader, read.measure)
    const problem = read.problem ?? metering?.problem
    const recorded = await decisionService.decide({
      ...asked,
      view,
      subject,
      keyId,
      cost,
      // The client takes its time to send a body.
      startedAt: isRead ? performance.now() : startedAt,
      named: view.readScopes({ route, path: matchedPath, headers, rawHeaders, url, claims, body: read.values }),
      peek: false,
      ...metering?.use,
      client: problem === undefined ? response : undefined,
      reauthenticate: async (live) => callerIn(await ports.authenticator.authenticate(live.policy, origin)),
    })
    if (!recorded.decision.allowed) return refused(recorded, read.measure)
    const ownHeaders = startHeaders(incoming, problem !== undefined)
    setDecisionHeaders(collector(ownHeaders), recorded, ports)
    const chosen = problem ?? metering?.chosen ?? choose(view, headers.host, route)
    const free = recorded.slots && decisionService.slots.hold(recorded.slots)
    if (isProblem(chosen)) free?.()
    if (isProblem(chosen)) return writeProblem(response, chosen, ownHeaders, formOf(view, request, route, read.measure))
    forward({
      ...incoming,
      ...matched,
      ...chosen,
      view,
      caller,
      hopByHop,
      ownHeaders,
      trace,
      decisionId: recorded.id ?? '',
      degradedBy: degradedBy(recorded.decision),
      charged: recorded.charged,
      metered: meteredExchange(reader, read.measure, recorded.charged, view.rates),
      free,
      readBody: read.bytes,
    })
  }
}

/** Bodies that are being read, before anything is charged: as many as one upstream has slots. */
function openBodies(ports: Ports) {
  const { connectionsMax, waitingMax, subjectShare, readMsMax: msMax } = { ...upstreamBounds, ...ports.upstreamBounds }
  return { reading: new FairSlots(connectionsMax + waitingMax, subjectShare), memory: new BodyMemory(), msMax }
}

/** The caller by another policy than the one that the request came under. */
const callerIn = (caller: Caller) => (caller.kind === 'known' ? caller : undefined)
