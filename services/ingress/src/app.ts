import type { Logger } from '@weir/runtime/logger.ts'
import { answerErrors, answerUnknownPaths, listenerOptions } from '@weir/runtime/problem.ts'
import fastify, { type FastifyInstance } from 'fastify'
import { createGate } from './gate.ts'
import type { Ports } from './ports.ts'
import { addAuthorizeRoute, routerUrl } from './routes/authorize.ts'
import { addCheckRoute } from './routes/check.ts'
import { createProxy } from './routes/proxy.ts'

/** Longer than the idle time of the proxies in front of us (nginx: 60 s), so that they close first. */
const keepAliveTimeoutMs = 75_000
/** A check is a few hundred bytes. */
const checkBodyBytesMax = 16_384
/** What a gateway lets through, Envoy 60 kB, and the client's path once more. */
const askHeaderBytesMax = 81_920

/** The two listeners of the ingress. Opens nothing: tests use `inject`. */
export async function buildApps(
  ports: Ports,
  logger: Logger,
  adminTokenSha256: string | undefined,
): Promise<{ proxy: FastifyInstance; api: FastifyInstance }> {
  const gate = createGate(ports)
  const reverse = createProxy(ports, gate, logger)
  const proxy: FastifyInstance = fastify({ ...listenerOptions(logger), serverFactory: reverse.listener })
  answerErrors(proxy)
  reverse.attach(proxy)
  const api: FastifyInstance = fastify({
    ...listenerOptions(logger),
    keepAliveTimeout: keepAliveTimeoutMs,
    bodyLimit: checkBodyBytesMax,
    http: { maxHeaderSize: askHeaderBytesMax },
    rewriteUrl: ({ url }) => routerUrl(url ?? ''),
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, allErrors: true } },
  })
  answerErrors(api)
  answerUnknownPaths(api, 'POST /v1/check, /v1/authorize')
  addCheckRoute(api, ports, gate, adminTokenSha256)
  await addAuthorizeRoute(api, ports, gate)
  return { proxy, api }
}
