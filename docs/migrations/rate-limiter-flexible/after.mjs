// The same answers limited by Weir: PORT=3000 WEIR_URL=http://127.0.0.1:8081 WEIR_KEY=token-of-answers node after.mjs
import { createServer } from 'node:http'
import { createClient } from '@weir/client'

const client = createClient({
  ...{ url: process.env.WEIR_URL, key: process.env.WEIR_KEY },
  ...{ timeoutMs: 10_000, onUnavailable: 'deny' },
})

createServer(async ({ headers }, response) => {
  const user = headers['x-user'] ?? 'nobody'
  const [guessed, spent] = [Number(headers['x-guessed']), Number(headers['x-spent'])]
  const decision = await client.check({ subject: 'answers', cost: guessed, attributes: { user }, settle: '15m' })
  response.setHeaders(new Map(Object.entries(decision.headers)))
  if (decision.reason === 'unavailable') return response.writeHead(503).end('Weir is away')
  if (!decision.allowed) return response.writeHead(429).end('too much')
  if (spent !== guessed) await client.settle({ subject: 'answers', id: decision.id, cost: spent })
  response.end('an answer')
}).listen(Number(process.env.PORT), '127.0.0.1')
