import type { Server } from 'node:http'
import type { Logger } from '@weir/runtime/logger.ts'
import { type Problem, problemType } from '@weir/runtime/problem.ts'
import type { ListenerTls } from '@weir/runtime/tls-listener.ts'
import type { FastifyInstance } from 'fastify'
import type { Settling } from '../decide/correct/settle.ts'
import type { DecisionService } from '../decide/decision-service.ts'
import type { Ports } from '../ports.ts'
import type { Arrival } from './proxy/arrival.ts'
import { createListener, type ListenerBounds, type ProxyDoor } from './proxy/listener.ts'
import { createPassOn } from './proxy/pass-on.ts'
import { writeProblem } from './proxy/problems.ts'
import { readTarget } from './proxy/read-target.ts'
import { answerProblem } from './proxy/refuse.ts'
import { createServe } from './proxy/serve.ts'

export interface ProxyPorts extends Ports {
  /** Gives back what requests were charged that the upstream failed. */
  readonly settling?: Pick<Settling, 'giveBack'> | undefined
}

/** The reverse proxy. */
export interface Proxy {
  /** What Fastify is to listen with: requests come to the proxy directly, past Fastify's own routing. */
  listener(): Server
  /** Closes with the app: tunnels first, which would keep it open; connections to upstreams last. */
  attach(app: FastifyInstance): void
}

/** The reverse proxy: identify, decide, record, and only then pass on. Paths here are the upstream's, none is ours. */
export function createProxy(
  ports: ProxyPorts,
  decisionService: DecisionService,
  log: Logger,
  { bounds, tls }: { readonly bounds?: ListenerBounds; readonly tls?: ListenerTls | undefined } = {},
): Proxy {
  const way = createPassOn(ports, log)
  const serve = createServe(ports, decisionService, way)
  let isClosing = false

  const start = (arrival: Arrival) => {
    serve(arrival, () => isClosing).catch((error: unknown) => {
      log.error({ err: error }, 'request failed')
      answerProblem(arrival, () => isClosing, internal)
    })
  }
  const door: ProxyDoor = {
    serve: (request, response, target, mayContinue) =>
      start({ request, response, target, mayContinue, protocol: undefined, startedAt: performance.now() }),
    serveUpgrade: (request, response, target, protocol) =>
      start({ request, response, target, mayContinue: () => undefined, protocol, startedAt: performance.now() }),
  }

  return {
    listener: () => createListener(door, bounds, tls),
    attach(app) {
      app.addHook('preClose', async () => {
        isClosing = true
        way.closeTunnels()
      })
      app.addHook('onClose', way.close)
      injectInto(app, door)
    },
  }
}

const internal: Problem = {
  type: problemType('internal'),
  title: 'Internal error',
  status: 500,
  detail: 'The request could not be served; the log says why.',
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
