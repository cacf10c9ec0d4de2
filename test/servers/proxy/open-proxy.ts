import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { systemClock } from '@weir/core/clock.ts'
import type { RateLimitDialect } from '@weir/core/limits/rate-limit-headers.ts'
import { DecisionService } from '@weir/decide/decision-service.ts'
import { HttpMetrics } from '@weir/ingress/http/timed-response.ts'
import { type ListenerBounds, listenerBounds } from '@weir/ingress/routes/proxy/listener.ts'
import { acceptProxyHeaders } from '@weir/ingress/routes/proxy/proxy-protocol.ts'
import type { UpstreamBounds } from '@weir/ingress/routes/proxy/upstream-pools.ts'
import { createProxy } from '@weir/ingress/routes/proxy.ts'
import { memoryPorts, sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { listenerTls } from '@weir/runtime/tls-listener.ts'
import fastify from 'fastify'
import { onTestFinished } from 'vitest'
import { listen } from '../../support/listen.ts'

/** What an upstream does with a request; by default it reads it and says `made`. */
export type Serve = (request: IncomingMessage, response: ServerResponse) => void

/** Set by over-tls.test.ts: the proxies of its file have this certificate. */
export const overTls: { files?: { readonly tlsCert: string; readonly tlsKey: string } } = {}

interface ProxyOptions {
  readonly serve?: Serve
  readonly onUpgrade?: (request: IncomingMessage, socket: Socket, head: Buffer) => void
  /** Lines of the policy's `identity`, as a YAML flow map. */
  readonly identity?: string
  readonly bounds?: Partial<ListenerBounds>
  readonly upstreamBounds?: Partial<UpstreamBounds>
  /** The upstream's, as a duration. */
  readonly timeout?: string
  readonly dialect?: RateLimitDialect
  /** The address whose connections begin with a header of the PROXY protocol. */
  readonly trusts?: string
  /** More of the upstream `here`, as lines of a YAML flow map; its `url` instead of that of `serve`. */
  readonly upstream?: string
}

export interface Answer {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: string
  readonly trailers: Record<string, string | undefined>
  readonly information: number[]
}

type Line = Record<string, unknown>

/**
 * A proxy in front of an upstream, both on real sockets, with limits kept in memory. The policy has the subjects `acme`
 * (key `acme-key`) and `poor` (key `poor-key`, whose limit of 1 a second request exceeds), the routes below, and the
 * upstreams `here`, `gone` (host gone.test: nobody listens) and no other.
 */
export async function openProxy(options: ProxyOptions = {}) {
  const seen: { method: string; url: string; rawHeaders: string[]; headers: IncomingMessage['headers'] }[] = []
  const upstreamSockets = new Set<Socket>()
  const upstream = createServer({ maxHeaderSize: 65_536 }, (incoming, response) => {
    const { method = '', url = '', rawHeaders, headers } = incoming
    seen.push({ method, url, rawHeaders, headers })
    if (options.serve !== undefined) options.serve(incoming, response)
    else incoming.resume().on('end', () => response.end('made'))
  })
  upstream.on('connection', (socket: Socket) => upstreamSockets.add(socket))
  if (options.onUpgrade !== undefined) upstream.on('upgrade', options.onUpgrade)
  const upstreamPort = await listen(upstream)

  const log = createLogger('test', 'silent')
  const outcomes: Line[] = []
  const ports = {
    ...memoryPorts(policyText(upstreamPort, options), systemClock),
    outcomes: {
      append(key: string, openLine: string) {
        outcomes.push({ key, ...JSON.parse(`${openLine}}`) })
        return true
      },
    },
    dialect: options.dialect,
    upstreamBounds: options.upstreamBounds,
  }
  const metrics = new HttpMetrics()
  const proxy = createProxy(ports, new DecisionService(ports), log, {
    bounds: { ...listenerBounds, ...options.bounds },
    tls: overTls.files && listenerTls(overTls.files, 'tls'),
    metrics,
  })
  const app = fastify({ serverFactory: proxy.listener })
  proxy.attach(app)
  const { trusts } = options
  if (trusts !== undefined) acceptProxyHeaders(app.server, (address) => trusts === address)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo

  const close = async () => {
    app.server.closeAllConnections()
    await app.close()
    upstream.closeAllConnections()
    upstream.close()
    await ports.authenticator.close()
  }
  onTestFinished(close)
  return {
    port,
    app,
    seen,
    records: ports.log.records,
    outcomes,
    metrics,
    policy: ports.policy,
    upstreamSockets,
    upstreamPort,
    ask: asker(port),
    raw: rawSender(port),
  }
}

const policyText = (upstreamPort: number, { identity = '{}', timeout = '20s', upstream = '' }: ProxyOptions) => `
version: 1
identity: ${identity}
plans: { free: { limits: [many] }, poor: { limits: [one] } }
limits:
  many: { algorithm: fixed_window, size: 100000, window: 1m }
  one: { algorithm: sliding_log, size: 1, window: 1h }
  record: { algorithm: fixed_window, size: 100, window: 1m, by: [path:name] }
  tenant: { algorithm: fixed_window, size: 100, window: 1m, by: [header:X-Tenant] }
routes:
  - { match: "* /v1/search", cost: 5 }
  - { match: "POST /v1/pay", cost: 7 }
  - { match: "GET /v1/$batch", cost: 9 }
  - { match: "POST /v1/bulk", cost: "json:/domains" }
  - { match: "GET /v1/lookup", cost: "query:count" }
  - { match: "GET /v1/export", cost: "header:X-Units" }
  - { match: "GET /queues/:vhost/:name", cost: 3, limits: [record] }
  - { match: "GET /queues/:vhost", cost: 2 }
  - { match: "GET /web/*", cost: 50 }
  - { match: "GET /web/:name", cost: 1 }
upstreams:
  here: { ${upstream.includes('url:') ? '' : `url: "http://127.0.0.1:${upstreamPort}", `}${upstream && `${upstream}, `}hosts: ["api.test", "127.0.0.1"], timeout: ${timeout} }
  gone: { url: "http://127.0.0.1:1", hosts: [gone.test] }
subjects:
  acme: { plan: free, keys: [{ sha256: "${sha256('acme-key')}", id: k1 }] }
  poor: { plan: poor, keys: [{ sha256: "${sha256('poor-key')}", id: k2 }] }
`

interface Asking {
  readonly method?: string
  readonly path?: string
  /** `key` undefined: acme's. */
  readonly headers?: Record<string, string | string[]>
  readonly body?: string | Buffer
}

/** One request over a connection of its own, as acme. */
function asker(port: number) {
  return async ({ method = 'GET', path = '/', headers = {}, body }: Asking = {}): Promise<Answer> => {
    const sent = request({
      host: '127.0.0.1',
      port,
      method,
      path,
      agent: false,
      headers: { host: 'api.test', 'x-api-key': 'acme-key', ...headers },
    })
    // Before the answer it rejects; an answer that comes before the body has gone is an answer all the same.
    sent.on('error', () => undefined)
    const information: number[] = []
    sent.on('information', ({ statusCode }) => information.push(statusCode)).end(body)
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    const said = await text(answer)
    return {
      status: answer.statusCode ?? 0,
      headers: answer.headers,
      body: said,
      trailers: answer.trailers,
      information,
    }
  }
}

/** Sends bytes as they are, and gives everything that comes back until the other side ends or `until` has come. */
function rawSender(port: number) {
  return async (bytes: string | Buffer, until?: RegExp): Promise<string> => {
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    await once(socket, 'connect')
    let said = ''
    const done = Promise.withResolvers<void>()
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      said += chunk
      if (until?.test(said) === true) done.resolve()
    })
    socket.on('close', () => done.resolve()).on('error', () => done.resolve())
    socket.write(bytes, 'latin1')
    await done.promise
    socket.destroy()
    return said
  }
}
