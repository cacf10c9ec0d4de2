// express-rate-limit decides, Weir looks on: PORT=3000 WEIR_URL=http://127.0.0.1:8081 WEIR_KEY=token-of-the-shop node both.mjs
import { createClient } from '@weir/client'
import express from 'express'
import { rateLimit } from 'express-rate-limit'

const client = createClient({ url: process.env.WEIR_URL, key: process.env.WEIR_KEY, timeoutMs: 10_000 })

const app = express()
// First, so that Weir hears of what the library refuses too. Nobody waits for its answer.
app.use('/api', (request, _response, next) => {
  client
    .check({ subject: 'shop', route: '/api', ip: request.ip })
    .catch((error) => process.stderr.write(`Weir did not hear of it: ${error}\n`))
  next()
})
app.use('/api', rateLimit({ windowMs: 60 * 60 * 1000, limit: 20 }))
app.get('/api/things', (_request, response) => response.send('things'))
app.listen(Number(process.env.PORT), '127.0.0.1')
