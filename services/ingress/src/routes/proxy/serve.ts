import { unmatchedRoute } from '@weir/core/policy/match-route.ts'
import type { Route } from '@weir/core/policy/policy.ts'
import type { Problem } from '@weir/runtime/problem.ts'
import type { Gate, Verdict } from '../../gate.ts'
import { readCost } from '../../http/read-cost.ts'
import { denialProblem, setVerdictHeaders } from '../../http/verdict-reply.ts'
import type { Ports } from '../../ports.ts'
import type { Arrival } from './arrival.ts'
import type { PassOn } from './pass-on.ts'
import { writeProblem } from './problems.ts'
import { readJsonCost } from './read-json-cost.ts'

/** The whole of it: identify, decide, record, and only then pass on. */
export function createServe(
  ports: Ports,
  gate: Gate,
  { passOn }: Pick<PassOn, 'passOn'>,
): (arrival: Arrival, isClosing: boolean) => Promise<void> {
  return async function serve(arrival, isClosing) {
    const { request, target } = arrival
    const { view } = ports.policy
    const { headers, method = '', url = '', socket } = request
    const origin = { headers, url, socket }
    const route = view.matchRoute(method, target.path) ?? unmatchedRoute
    const asked = { ip: ports.identifier.addressOf(view, origin), route, method }
    const found = ports.identifier.identify(view, origin)
    const caller = found instanceof Promise ? await found : found
    if (caller.kind === 'stranger') {
      const verdict = await gate.refuseStranger({ ...asked, retryAfterMs: caller.retryAfterMs })
      return refuse(arrival, isClosing, verdict, ports)
    }
    const said = readCost(route, origin)
    const costed = said === 'body' ? await readBodyCost(arrival, route) : { cost: said, body: undefined }
    const { cost, body: readBody } = costed
    if (typeof cost !== 'number') return answerProblem(arrival, isClosing, cost)
    const { subject, keyId } = caller
    const named = view.requestScopes(headers, url)
    const known = { ...asked, view, subject, keyId, cost, named }
    const verdict = await gate.decide({ ...known, peek: false, idempotencyKey: undefined })
    if (!verdict.decision.allowed) return refuse(arrival, isClosing, verdict, ports)
    const ownHeaders = startHeaders(arrival, isClosing, false)
    setVerdictHeaders(collector(ownHeaders), verdict, ports)
    passOn({
      ...arrival,
      view,
      route,
      caller,
      decisionId: verdict.id ?? '',
      charged: verdict.charged,
      ownHeaders,
      readBody,
    })
  }
}

/** A request that ends here, with a problem and no decision. */
export function answerProblem(arrival: Arrival, isClosing: boolean, problem: Problem): void {
  writeProblem(arrival.response, problem, startHeaders(arrival, isClosing, true))
}

function refuse(arrival: Arrival, isClosing: boolean, verdict: Verdict, ports: Ports): void {
  const headers = startHeaders(arrival, isClosing, true)
  const target = collector(headers)
  setVerdictHeaders(target, verdict, ports)
  const problem = denialProblem(target, verdict)
  writeProblem(arrival.response, problem, headers)
}

/**
 * Where our headers of an answer begin: with whether its connection ends. A client that waits for 100 and is refused may
 * send its body or its next request, and nobody could tell which.
 */
function startHeaders({ request, protocol }: Arrival, isClosing: boolean, isRefusal: boolean): string[] {
  const closes = (isClosing && protocol === undefined) || (isRefusal && request.headers.expect !== undefined)
  return closes ? ['connection', 'close'] : []
}

/** The cost that a body says, with the very bytes that were read: those are sent on. */
async function readBodyCost({ request, mayContinue }: Arrival, { costFrom }: Route) {
  mayContinue()
  return readJsonCost(request, costFrom?.kind === 'json' ? costFrom.pointer : '')
}

/** Collects headers as names and values in turns, which Node writes fastest. */
function collector(headers: string[]) {
  return {
    header(name: string, value: string | number) {
      headers.push(name, `${value}`)
    },
  }
}
