import { createServer, type Server } from 'node:http'

/** Returns the API that the demo protects, not yet listening: it answers every request with what it saw. */
export function createUpstream(): Server {
  const server = createServer((request, response) => {
    request.resume()
    request.once('end', () => {
      const body = { message: 'Hello from the demo upstream.', method: request.method, path: request.url }
      response.writeHead(200, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`)
    })
  })
  // Longer than the ingress keeps an idle connection, so that it is never closed under a request.
  server.keepAliveTimeout = 75_000
  return server
}
