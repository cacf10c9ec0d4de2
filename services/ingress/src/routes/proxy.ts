import type { Server } from 'node:http'
import type { DecisionService } from '@weir/decide/decision-service.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { problem } from '@weir/runtime/problem.ts'
import type { ListenerTls } from '@weir/runtime/tls-listener.ts'
import type { FastifyInstance } from 'fastify'
import { HttpMetrics, startedAtOf, timedResponses } from '../http/timed-response.ts'
import type { Ports } from '../ports.ts'
import { answerProblem, writeProblem } from './proxy/answers.ts'
import { answerCors } from './proxy/cors.ts'
import { createForwarder, type ForwardPorts } from './proxy/forward.ts'
import { createListener, type ListenerBounds, type ServeRequest } from './proxy/listener.ts'
import { readTarget } from './proxy/read-target.ts'
import { createServe } from './proxy/serve.ts'

/** The reverse proxy: authenticate, decide, record, and only then forward. All paths here are the upstream's. */
export function createProxy(
  ports: Ports & ForwardPorts,
  decisionService: DecisionService,
  log: Logger,
  {
    bounds,
    tls,
    metrics = new HttpMetrics(),
  }: { readonly bounds?: ListenerBounds; readonly tls?: ListenerTls | undefined; readonly metrics?: HttpMetrics } = {},
) {
  const forwarder = createForwarder(ports, log, metrics)
  const Answer = timedResponses(() => metrics.answers.proxy)
  let isClosing = false
  const serve = createServe(ports, decisionService, forwarder.forward)

  const closing = () => isClosing
  const serveRequest: ServeRequest = (request, response, target, mayContinue, protocol) => {
    const startedAt = startedAtOf(response)
    const asked = { request, response, target, startedAt, protocol, mayContinue, isClosing: closing }
    const cors = answerCors(ports.policy.view, asked)
    if (cors === 'answered') return
    const incoming = cors === undefined ? asked : { ...asked, cors }
    serve(incoming).catch((error: unknown) => {
      log.error({ err: error }, 'request failed')
      answerProblem(incoming, internal)
    })
  }

  return {
    /** The server that Fastify listens with: requests come to the proxy directly, past Fastify's own routing. */
    listener: (): Server => createListener(serveRequest, bounds, tls, Answer),
    /** At a stop, before what is settled is waited for. */
    settleDrained: forwarder.settleDrained,
    /** Closes with the app: tunnels first, which would keep it open; connections to upstreams last. */
    attach(app: FastifyInstance): void {
      app.addHook('preClose', async () => {
        isClosing = true
        forwarder.closeTunnels()
      })
      app.addHook('onClose', forwarder.close)
      // The listener answers what is no request, in its turn; Fastify would end the connection immediately.
      for (const one of app.server.listeners('clientError').slice(1)) app.server.off('clientError', one as () => void)
      injectInto(app, serveRequest)
    },
  }
}

const internal = problem(
  'internal',
  'Internal error',
  500,
  'The request could not be served. See the log for the reason.',
)

/** Serves requests that never come over the listener: tests hand them to Fastify itself. */
function injectInto(app: FastifyInstance, serveRequest: ServeRequest): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
  app.setNotFoundHandler((request, reply) => {
    reply.hijack()
    // With one header set, Node keeps the others where Fastify's inject looks for them.
    reply.raw.setHeader('date', new Date().toUTCString())
    const read = readTarget(request.raw)
    if ('problem' in read) writeProblem(reply.raw, read.problem, [])
    else serveRequest(request.raw, reply.raw, read.target, () => undefined)
  })
}
