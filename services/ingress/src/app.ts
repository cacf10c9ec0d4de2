import { Corrections } from '@weir/decide/correct/corrections.ts'
import { Settling } from '@weir/decide/correct/settle.ts'
import { UsageSettler } from '@weir/decide/correct/usage-settler.ts'
import { DecisionService } from '@weir/decide/decision-service.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { answerErrors, answerErrorsAndUnrouted, boundHeaders, listenerOptions } from '@weir/runtime/problem.ts'
import type { ListenerTls } from '@weir/runtime/tls-listener.ts'
import fastify, { type FastifyInstance } from 'fastify'
import { createGrpcListener } from './grpc/listener.ts'
import { HttpMetrics, timedResponses } from './http/timed-response.ts'
import { describeApi } from './openapi/describe.ts'
import type { Ports } from './ports.ts'
import { addAuthorizeRoute, askHeaderBytesMax, authorizePath, routerUrl } from './routes/authorize.ts'
import { createCallerAuthorizer } from './routes/check/authorize-caller.ts'
import { batchPath, checkPath } from './routes/check/check-paths.ts'
import { addCheckRoutes } from './routes/check.ts'
import { addLeaseRoute } from './routes/leases.ts'
import { addPauseRoute } from './routes/pause.ts'
import { createProxy } from './routes/proxy.ts'
import { addSettleRoutes } from './routes/settle.ts'

/**
 * For a whole request to the API: 262 kB at most, from programs nearby.
 */
const askTimeoutMs = 30_000
/**
 * At a stop, waiting requests may still be admitted for this long: less than half of what the stop may take, as they
 * are served after it.
 */
const drainMs = 8_000
/** At a stop, connections whose last answer went out after the stop began are closed within this time. */
const sweepMs = 100
/** A check is a few hundred bytes. */
const checkBodyBytesMax = 16_384

/** The listeners, and what a start registers and a stop closes. */
export type Apps = Awaited<ReturnType<typeof buildApps>>

/** The three listeners of the ingress. Opens nothing: tests use `inject`. */
export async function buildApps(
  ports: Ports,
  logger: Logger,
  adminTokenSha256: () => string,
  tls: { readonly [listener in 'proxy' | 'api' | 'grpc']?: ListenerTls | undefined } = {},
) {
  const corrections = new Corrections(ports.log)
  const decisionService = new DecisionService({ ...ports, corrections })
  const settling = new Settling({ ...ports, corrections })
  const usage = new UsageSettler(settling, corrections)
  const metrics = new HttpMetrics()
  const reverse = createProxy({ ...ports, settling, usage }, decisionService, logger, { tls: tls.proxy, metrics })
  const proxy: FastifyInstance = fastify({ ...listenerOptions(logger), serverFactory: reverse.listener })
  answerErrors(proxy)
  reverse.attach(proxy)
  const { check, batch, authorize, other } = metrics.answers
  const timesByPath = new Map(Object.entries({ [checkPath]: check, [batchPath]: batch, [authorizePath]: authorize }))
  const api: FastifyInstance = fastify({
    ...listenerOptions(logger, tls.api, {
      maxHeaderSize: askHeaderBytesMax,
      ServerResponse: timedResponses((url) => timesByPath.get(url) ?? other),
      // Of two timeouts Node takes the longer for the whole request.
      headersTimeout: askTimeoutMs,
    }),
    requestTimeout: askTimeoutMs,
    bodyLimit: checkBodyBytesMax,
    rewriteUrl: ({ url }) => routerUrl(url ?? ''),
  })
  answerErrorsAndUnrouted(
    api,
    '/v1/check, /v1/check/batch, /v1/authorize, /v1/settle, /v1/leases, /v1/pause, /openapi.json',
  )
  // Text is no check: without its reader it is refused as any other type.
  api.removeContentTypeParser('text/plain')
  api.decorateRequest('check', null)
  await describeApi(api)
  const authorizeCaller = createCallerAuthorizer(ports, decisionService, adminTokenSha256)
  addCheckRoutes(api, ports, decisionService, authorizeCaller)
  addSettleRoutes(api, settling, authorizeCaller, ports.policy)
  addLeaseRoute(api, ports, { decisionService, settling }, authorizeCaller)
  addPauseRoute(api, ports, authorizeCaller)
  await addAuthorizeRoute(api, ports, decisionService)
  // After the route for gateways, which refuses in words that they can pass on.
  boundHeaders(api, askHeaderBytesMax)
  // Each gives the journal what waits; the last to close leaves nothing behind.
  for (const app of [proxy, api]) {
    // Not waited for: Fastify would go on to listen meanwhile. Its listener is closed after the last answer anyway.
    app.addHook('preClose', async () => void decisionService.delays.drain(drainMs))
    app.addHook('onClose', async () => {
      await reverse.settleDrained()
      await usage.drain()
      const left = corrections.close()
      if (left > 0) logger.error({ left }, 'corrections lost: the journal does not accept them')
    })
  }
  const grpc = createGrpcListener(ports, decisionService, adminTokenSha256, logger, tls.grpc)
  /** Stops listening for HTTP immediately, serves waiting requests for a while, and ends with the last answer. */
  const close = () => closeBoth([proxy, api])
  return { proxy, api, grpc, settling, usage, decisionService, metrics, close }
}

/** Node closes idle connections once, when the stop begins; those that become idle later would keep it open. */
async function closeBoth(apps: readonly FastifyInstance[]): Promise<void> {
  const sweep = setInterval(() => {
    for (const { server } of apps) server.closeIdleConnections()
  }, sweepMs)
  try {
    await Promise.all(apps.map((app) => app.close()))
  } finally {
    clearInterval(sweep)
  }
}
