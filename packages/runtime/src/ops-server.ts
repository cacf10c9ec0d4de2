import { createServer, type RequestListener, type Server } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import type { Registry } from 'prom-client'
import { checkEveryMs, endSilent, inTurn, requestMsMax } from './bound-connections.ts'
import { registerScraped } from './scraped-metrics.ts'

/** How often readiness is looked at while no one asks for it, so that its metrics are no older. */
const lookEveryMs = 5_000

/** A sentence that says what is missing; or a warning, while the part still serves; or nothing. */
export type Readiness = string | { readonly warning: string } | undefined

/** The readiness of a part that serves all the same; `problem` is undefined where it is well. */
export const warningOf = (problem: string | undefined): Readiness =>
  problem === undefined ? undefined : { warning: problem }

/** Returns the readiness of a part of the process. */
export type ReadinessCheck = () => Readiness | Promise<Readiness>

type Report = Awaited<ReturnType<typeof askParts>>

async function askParts(readiness: Readonly<Record<string, ReadinessCheck>>) {
  const answers = await Promise.all(
    Object.entries(readiness).map(async ([name, check]) => [name, await check()] as const),
  )
  const lines = answers.flatMap(([name, found]) => {
    if (found === undefined) return []
    return [typeof found === 'string' ? `${name}: ${found}` : `${name}: warning: ${found.warning}`]
  })
  const reasons = answers.filter(([, found]) => typeof found === 'string').length
  return { isReady: reasons === 0, lines, warnings: lines.length - reasons }
}

/**
 * Requests that come before or while an answer is made share it: all that a turn of the event loop reads, or one caller
 * with many connections would have it made for each.
 */
function shared<T>(make: () => Promise<T>): () => Promise<T> {
  let making: Promise<T> | undefined
  return () =>
    (making ??= setImmediate()
      .then(make)
      .finally(() => (making = undefined)))
}

/** Looks at readiness until the server closes, and shows in the metrics what was found last. */
function watchReadiness(server: Server, metrics: Registry, look: () => Promise<Report>): () => Promise<Report> {
  let last: Report = { isReady: false, lines: [], warnings: 0 }
  registerScraped(metrics, {
    weir_ready: { help: 'Whether /readyz last answered that the service is ready', read: () => Number(last.isReady) },
    weir_ready_warnings: { help: 'Warnings in the last /readyz answer', read: () => last.warnings },
  })
  const lookNow = async () => {
    last = await look()
    return last
  }
  let underWay: Promise<unknown> | undefined
  // A check that fails is a bug, which /readyz shows.
  const onTick = () => {
    underWay ??= lookNow()
      .catch(() => undefined)
      .finally(() => (underWay = undefined))
  }
  onTick()
  const timer = setInterval(onTick, lookEveryMs)
  server.once('close', () => clearInterval(timer))
  return lookNow
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
  const render = shared(async () => Buffer.from(await options.metrics.metrics()))
  const answer = async (path: string): Promise<{ status: number; type?: string; body: string | Buffer }> => {
    if (path === '/livez') return { status: 200, body: 'ok\n' }
    if (path === '/metrics') {
      return { status: 200, type: options.metrics.contentType, body: await render() }
    }
    if (path !== '/readyz') return { status: 404, body: 'Available paths: /livez, /readyz and /metrics.\n' }
    const { isReady, lines } = await lookNow()
    const text = isReady ? ['ok', ...lines] : lines
    return { status: isReady ? 200 : 503, body: `${text.join('\n')}\n` }
  }
  const serve: RequestListener = (request, response) => {
    answer(request.url?.split('?')[0] ?? '').then(
      ({ status, type = 'text/plain; charset=utf-8', body }) =>
        response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body),
      (error: unknown) => response.writeHead(500).end(`${String(error)}\n`),
    )
  }
  const server = endSilent(
    createServer({ requestTimeout: requestMsMax, connectionsCheckingInterval: checkEveryMs }, inTurn(serve)),
  )
  const lookNow = watchReadiness(
    server,
    options.metrics,
    shared(() => askParts(options.readiness)),
  )
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
