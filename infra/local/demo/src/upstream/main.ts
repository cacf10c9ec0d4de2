/** The API that the demo protects: answers every request with what it saw. `main.ts --port N` */
import { createServer } from 'node:http'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { port: { type: 'string' } } })

const server = createServer((request, response) => {
  request.resume()
  request.once('end', () => {
    const body = { message: 'Hello from the demo upstream.', method: request.method, path: request.url }
    response.writeHead(200, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`)
  })
})
// Longer than the ingress keeps an idle connection, so that it is never closed under a request.
server.keepAliveTimeout = 75_000
server.listen(Number(values.port), '127.0.0.1')
process.once('SIGTERM', () => {
  server.close()
  server.closeAllConnections()
})
