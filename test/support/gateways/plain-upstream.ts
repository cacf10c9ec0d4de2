import { createHash } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request as it reached the upstream. */
export interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly bodySha256: string
}

/**
 * An API that knows nothing of Weir: answers everything with 200, also where it claims RateLimit headers of its own.
 */
export async function startPlainUpstream() {
  const seen: Seen[] = []
  const server = createServer({ maxHeaderSize: 65_536 }, (request, response) => {
    const { method = '', url = '', headers, rawHeaders } = request
    const hash = createHash('sha256')
    request.on('data', (chunk: Buffer) => hash.update(chunk))
    request.once('end', () => {
      seen.push({ method, url, headers, rawHeaders, bodySha256: hash.digest('hex') })
      response.writeHead(200, { 'content-type': 'text/plain', ratelimit: '"forged";r=9' }).end('served')
    })
  })
  server.maxHeadersCount = 0 // else Node drops those after the 1,000th
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    close: () =>
      new Promise<void>((done) => {
        server.closeAllConnections()
        server.close(() => done())
      }),
  }
}
