import { createServer } from 'node:http'
import { listen } from '../listen.ts'

/**
 * A model's API: answers with the `usage` that the request's header `x-usage` has, as JSON, or without one. With
 * `x-stream` it is in the last event of a stream.
 */
export async function startModelUpstream() {
  let served = 0
  const server = createServer((request, response) => {
    const { 'x-usage': usage, 'x-stream': stream } = request.headers
    served += 1
    const answer = JSON.stringify({ choices: [], ...(usage !== undefined && { usage: JSON.parse(String(usage)) }) })
    response.writeHead(200, { 'content-type': stream === undefined ? 'application/json' : 'text/event-stream' })
    response.end(stream === undefined ? answer : `data: {"usage":null}\n\ndata: ${answer}\n\ndata: [DONE]\n\n`)
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    /** How many requests came. */
    served: () => served,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
