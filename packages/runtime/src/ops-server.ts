import { createServer, type Server } from 'node:http'
import type { Registry } from 'prom-client'

/** A sentence that says what is missing; or a warning, while the part still serves; or nothing. */
export type Readiness = string | { readonly warning: string } | undefined

/** Returns the readiness of a part of the process. */
export type ReadinessCheck = () => Readiness | Promise<Readiness>

async function askParts(
  readiness: Readonly<Record<string, ReadinessCheck>>,
): Promise<{ isReady: boolean; lines: string[] }> {
  const answers = await Promise.all(
    Object.entries(readiness).map(async ([name, check]) => [name, await check()] as const),
  )
  const lines = answers.flatMap(([name, found]) => {
    if (found === undefined) return []
    return [typeof found === 'string' ? `${name}: ${found}` : `${name}: warning: ${found.warning}`]
  })
  return { isReady: answers.every(([, found]) => typeof found !== 'string'), lines }
}

/**
 * /livez (the process answers), /readyz (what it needs is there) and /metrics, on a port of their own. Liveness asks no
 * other server, so that an outage elsewhere restarts nothing.
 */
export async function startOpsServer(options: {
  readonly host: string
  readonly port: number
  readonly metrics: Registry
  /** Checks by the name of their part. A sentence makes /readyz answer 503 and name the part; a warning is shown. */
  readonly readiness: Readonly<Record<string, ReadinessCheck>>
}): Promise<Server> {
  const answer = async (path: string): Promise<{ status: number; type?: string; body: string }> => {
    if (path === '/livez') return { status: 200, body: 'ok\n' }
    if (path === '/metrics') {
      return { status: 200, type: options.metrics.contentType, body: await options.metrics.metrics() }
    }
    if (path !== '/readyz') return { status: 404, body: 'There are /livez, /readyz and /metrics.\n' }
    const { isReady, lines } = await askParts(options.readiness)
    const text = isReady ? ['ok', ...lines] : lines
    return { status: isReady ? 200 : 503, body: `${text.join('\n')}\n` }
  }
  const server = createServer((request, response) => {
    answer(request.url?.split('?')[0] ?? '').then(
      ({ status, type = 'text/plain; charset=utf-8', body }) =>
        response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body),
      (error: unknown) => response.writeHead(500).end(`${String(error)}\n`),
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  return server
}

/** Stops listening and drops idle connections. */
export function closeHttpServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
