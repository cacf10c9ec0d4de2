// The same API limited by Weir: PORT=3000 WEIR_URL=http://127.0.0.1:8081 WEIR_KEY=key-of-the-shop node after.mjs
import { createClient, weirExpress } from '@weir/client'
import express from 'express'

const client = createClient({ url: process.env.WEIR_URL, key: process.env.WEIR_KEY })
const limited = weirExpress({
  client,
  ask: (request) => ({
    route: `${request.method} ${request.baseUrl}${request.path}`,
    ip: request.ip,
    ...(request.body?.user === undefined ? {} : { attributes: { user: request.body.user } }),
  }),
})

// What is settled to 0 before its answer leaves was never charged.
const giveBack = (response) => client.settle({ id: response.get('Weir-Decision'), cost: 0 })

const app = express()
app.use('/api', limited)
app.get('/api/things', (_request, response) => response.send('things'))
app.get('/api/health', (_request, response) => response.send('well'))
app.get('/api/broken', async (_request, response) => {
  await giveBack(response)
  response.status(500).send('broken')
})
app.post('/login', express.json(), limited, async (request, response) => {
  const isRight = request.body.password === 'right'
  if (isRight) await giveBack(response)
  response.status(isRight ? 200 : 401).send(isRight ? 'welcome' : 'wrong password')
})
app.listen(Number(process.env.PORT), '127.0.0.1')
