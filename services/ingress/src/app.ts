import type { Logger } from '@weir/runtime/logger.ts'
import { answerErrors, answerUnknownPaths, listenerOptions } from '@weir/runtime/problem.ts'
import fastify, { type FastifyInstance } from 'fastify'
import { createGate } from './gate.ts'
import type { Ports } from './ports.ts'
import { addCheckRoute } from './routes/check.ts'
import { addProxyRoutes } from './routes/proxy.ts'

/** Longer than the idle time of the proxies in front of us (nginx: 60 s), so that they close first. */
const keepAliveTimeoutMs = 75_000
/** A check is a few hundred bytes. */
const checkBodyBytesMax = 16_384

/** The two listeners of the ingress. Opens nothing: tests use `inject`. */
export async function buildApps(
  ports: Ports,
  logger: Logger,
  adminTokenSha256: string | undefined,
): Promise<{ proxy: FastifyInstance; api: FastifyInstance }> {
  const gate = createGate(ports)
  const proxy: FastifyInstance = fastify({
    ...listenerOptions(logger),
    keepAliveTimeout: keepAliveTimeoutMs,
  })
  answerErrors(proxy)
  await addProxyRoutes(proxy, ports, gate)
  const api: FastifyInstance = fastify({
    ...listenerOptions(logger),
    keepAliveTimeout: keepAliveTimeoutMs,
    bodyLimit: checkBodyBytesMax,
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, allErrors: true } },
  })
  answerErrors(api)
  answerUnknownPaths(api, 'POST /v1/check')
  addCheckRoute(api, ports, gate, adminTokenSha256)
  return { proxy, api }
}
