// An API limited by express-rate-limit: PORT=3000 node before.mjs
import express from 'express'
import { rateLimit } from 'express-rate-limit'

const anHour = 60 * 60 * 1000

// By address; requests that fail cost nothing.
const hour = rateLimit({
  ...{ windowMs: anHour, limit: 20, identifier: 'hour', standardHeaders: 'draft-8', legacyHeaders: false },
  skip: (request) => request.path === '/health',
  skipFailedRequests: true,
})
// By user; only what fails costs something.
const login = rateLimit({
  ...{ windowMs: anHour, limit: 5, identifier: 'login', standardHeaders: 'draft-8', legacyHeaders: false },
  keyGenerator: (request) => request.body.user,
  skipSuccessfulRequests: true,
})

const app = express()
app.use('/api', hour)
app.get('/api/things', (_request, response) => response.send('things'))
app.get('/api/health', (_request, response) => response.send('well'))
app.get('/api/broken', (_request, response) => response.status(500).send('broken'))
app.post('/login', express.json(), login, (request, response) => {
  const isRight = request.body.password === 'right'
  response.status(isRight ? 200 : 401).send(isRight ? 'welcome' : 'wrong password')
})
app.listen(Number(process.env.PORT), '127.0.0.1')
