// The same API limited by Weir: PORT=3000 WEIR_URL=http://127.0.0.1:8081 WEIR_KEY=token-of-the-app node after.mjs
import { callerKey, createClient, weirFastify } from '@weir/client'
import fastify from 'fastify'

const app = fastify()
await app.register(weirFastify, {
  client: createClient({
    ...{ url: process.env.WEIR_URL, key: process.env.WEIR_KEY },
    ...{ timeoutMs: 10_000, onUnavailable: 'allow' },
  }),
  ask: (request) => ({ key: callerKey(request), route: `${request.method} ${request.url.split('?')[0]}` }),
})

app.get('/things', async () => 'things')
app.get('/search', async () => 'found')
app.get('/health', async () => 'well')
await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })
