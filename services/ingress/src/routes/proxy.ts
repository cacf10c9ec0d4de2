import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { unmatchedRoute } from '@weir/core/policy/match-route.ts'
import type { Route } from '@weir/core/policy/policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { type Problem, problemType } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import type { Gate, Verdict } from '../gate.ts'
import { readCost } from '../http/read-cost.ts'
import { denialProblem, setVerdictHeaders } from '../http/verdict-reply.ts'
import type { Ports } from '../ports.ts'
import { createListener, type ListenerBounds, type ProxyDoor } from './proxy/listener.ts'
import { createPassOn } from './proxy/pass-on.ts'
import { writeProblem } from './proxy/problems.ts'
import { readJsonCost } from './proxy/read-json-cost.ts'
import { readTarget, type Target } from './proxy/read-target.ts'

/** The reverse proxy. */
export interface Proxy {
  /** What Fastify is to listen with: requests come to the proxy directly, past Fastify's own routing. */
  listener(): Server
  /** Closes with the app: tunnels first, which would keep it open; connections to upstreams last. */
  attach(app: FastifyInstance): void
}

/** A request as it came, before anything is known of it. */
interface Arrival {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly target: Target
  readonly startedAt: number
  readonly protocol: string | undefined
  readonly mayContinue: () => void
}

/** The reverse proxy: identify, decide, record, and only then pass on. Paths here are the upstream's, none is ours. */
export function createProxy(ports: Ports, gate: Gate, log: Logger, bounds?: ListenerBounds): Proxy {
  const { passOn, closeTunnels, close } = createPassOn(ports, log)
  let isClosing = false

  /** Ours on every answer: on one that ends its connection, also that it does. */
  const startHeaders = ({ request, protocol }: Arrival, isRefusal: boolean): string[] => {
    // A client that waits for 100 and is refused may send its body or the next request: nobody could tell.
    const closes = (isClosing && protocol === undefined) || (isRefusal && request.headers.expect !== undefined)
    return closes ? ['connection', 'close'] : []
  }

  const answerProblem = (arrival: Arrival, problem: Problem) =>
    writeProblem(arrival.response, problem, startHeaders(arrival, true))

  const refuse = (arrival: Arrival, verdict: Verdict) => {
    const headers = startHeaders(arrival, true)
    const target = collector(headers)
    setVerdictHeaders(target, verdict)
    const problem = denialProblem(target, verdict)
    writeProblem(arrival.response, problem, headers)
  }

  const decide = async (arrival: Arrival): Promise<void> => {
    const { request, target } = arrival
    const { view } = ports.policy
    const { headers, method = '', url = '', socket } = request
    const origin = { headers, url, socket }
    const route = view.matchRoute(method, target.path) ?? unmatchedRoute
    const asked = { ip: ports.identifier.addressOf(view, origin), route, method }
    const found = ports.identifier.identify(view, origin)
    const caller = found instanceof Promise ? await found : found
    if (caller.kind === 'stranger') {
      return refuse(arrival, gate.refuseStranger({ ...asked, retryAfterMs: caller.retryAfterMs }))
    }
    const said = readCost(route, origin)
    const costed = said === 'body' ? await readBodyCost(arrival, route) : { cost: said, body: undefined }
    const { cost, body: readBody } = costed
    if (typeof cost !== 'number') return answerProblem(arrival, cost)
    const { subject, keyId } = caller
    const named = view.requestScopes(headers, url)
    const verdict = await gate.decide({
      ...asked,
      view,
      subject,
      keyId,
      cost,
      peek: false,
      named,
      idempotencyKey: undefined,
    })
    if (!verdict.decision.allowed) return refuse(arrival, verdict)
    const ownHeaders = startHeaders(arrival, false)
    setVerdictHeaders(collector(ownHeaders), verdict)
    passOn({ ...arrival, view, route, caller, decisionId: verdict.id ?? '', ownHeaders, readBody })
  }

  const start = (arrival: Arrival) => {
    decide(arrival).catch((error: unknown) => {
      log.error({ err: error }, 'request failed')
      answerProblem(arrival, internal)
    })
  }

  const door: ProxyDoor = {
    serve: (request, response, target, mayContinue) =>
      start({ request, response, target, mayContinue, protocol: undefined, startedAt: performance.now() }),
    serveUpgrade: (request, response, target, protocol) =>
      start({ request, response, target, mayContinue: () => undefined, protocol, startedAt: performance.now() }),
  }

  return {
    listener: () => createListener(door, bounds),
    attach(app) {
      app.addHook('preClose', async () => {
        isClosing = true
        closeTunnels()
      })
      app.addHook('onClose', close)
      injectInto(app, door)
    },
  }
}

/** The cost that a body says, with the very bytes that were read: those are sent on. */
async function readBodyCost({ request, mayContinue }: Arrival, { costFrom }: Route) {
  mayContinue()
  return readJsonCost(request, costFrom?.kind === 'json' ? costFrom.pointer : '')
}

const internal: Problem = {
  type: problemType('internal'),
  title: 'Internal error',
  status: 500,
  detail: 'The request could not be served; the log says why.',
}

/** Collects headers as names and values in turns, which Node writes fastest. */
function collector(headers: string[]) {
  return {
    header(name: string, value: string | number) {
      headers.push(name, `${value}`)
    },
  }
}

/** For requests that never come over the listener: tests hand them to Fastify itself. */
function injectInto(app: FastifyInstance, door: ProxyDoor): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
  app.setNotFoundHandler((request, reply) => {
    reply.hijack()
    // With one header set, Node keeps the others where Fastify's inject looks for them.
    reply.raw.setHeader('date', new Date().toUTCString())
    const read = readTarget(request.raw)
    if ('problem' in read) writeProblem(reply.raw, read.problem, [])
    else door.serve(request.raw, reply.raw, read.target, () => undefined)
  })
}
