// The same API limited by Weir: PORT=3000 WEIR_URL=http://127.0.0.1:8081 WEIR_KEY=token-of-the-shop node after.mjs
import { createClient, weirExpress } from '@weir/client'
import express from 'express'

const client = createClient({ url: process.env.WEIR_URL, key: process.env.WEIR_KEY, timeoutMs: 10_000 })

// By address. Express reads paths in capitals too, Weir does not: so the app says which route it is.
const hour = weirExpress({
  client,
  ask: ({ path, ip }) => (path === '/health' ? undefined : { subject: 'shop', route: '/api', ip }),
})
// By user.
const login = weirExpress({
  client,
  ask: (request) => ({ subject: 'shop', route: 'POST /login', attributes: { user: request.body.user } }),
})
// What is settled to 0 before its answer leaves was never charged.
const giveBack = (request) => client.settle({ subject: 'shop', id: request.weir.id, cost: 0 })

const app = express()
app.use('/api', hour)
app.get('/api/things', (_request, response) => response.send('things'))
app.get('/api/health', (_request, response) => response.send('well'))
app.get('/api/broken', async (request, response) => {
  await giveBack(request)
  response.status(500).send('broken')
})
app.post('/login', express.json(), login, async (request, response) => {
  const isRight = request.body.password === 'right'
  if (isRight) await giveBack(request)
  response.status(isRight ? 200 : 401).send(isRight ? 'welcome' : 'wrong password')
})
app.listen(Number(process.env.PORT), '127.0.0.1')
