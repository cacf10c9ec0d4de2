/** What proxies stand in front of in benches: answers at once, and costs little, since it shares the machine. */
import { createServer } from 'node:http'
import { readArguments } from './answer.ts'

const body = JSON.stringify({ things: ['one', 'two', 'three'], next: null })
const head = { 'content-type': 'application/json', 'content-length': body.length }
const server = createServer({ keepAliveTimeout: 75_000 }, (request, response) => {
  request.resume()
  response.writeHead(200, head).end(body)
})
server.listen(readArguments().port, '127.0.0.1')
