// Holds the limits of whoever's API key a request carries, on every route.
import { callerKey, createClient, weirFastify } from '@weir/client'
import fastify from 'fastify'

const client = createClient({ url: process.env.WEIR_URL, key: process.env.WEIR_KEY, onUnavailable: 'allow' })
const app = fastify()
app.register(weirFastify, {
  client,
  ask: (request) => ({ key: callerKey(request), route: `${request.method} ${request.url}`, ip: request.ip }),
})
app.get('/hello', async (request) => ({ hello: 'world', left: request.weir.limits[0]?.remaining }))
console.log(await app.listen({ port: Number(process.env.PORT ?? 3000) }))
