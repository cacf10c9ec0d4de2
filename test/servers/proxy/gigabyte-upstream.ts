/** An upstream as a process of its own: `GET /BYTES` answers with so many, anything else with how many came. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { streamOf } from './megabytes.ts'

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    const bytes = Number(request.url?.slice(1))
    streamOf(bytes).pipe(response.writeHead(200, { 'content-length': bytes }))
    return
  }
  let bytes = 0
  request
    .on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    .on('end', () => response.end(`${bytes}`))
})
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`))
