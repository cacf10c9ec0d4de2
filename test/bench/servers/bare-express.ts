/** Express and nothing else. */
import express from 'express'
import { answer, readArguments } from './answer.ts'

const { port } = readArguments()
const app = express()
app.use(express.json())
app.post('/v1/check', (_request, response) => {
  response.json(answer)
})
app.listen(port, '127.0.0.1').keepAliveTimeout = 75_000
