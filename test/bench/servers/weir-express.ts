/** Express with @weir/client, set up as its documentation shows: every request asks an ingress before it is served. */
import { createClient, weirExpress } from '@weir/client'
import express from 'express'
import { checkedRoute, token } from '../ingress/caller.ts'
import { answer, callerOf, clientTimeoutMs, readArguments } from './answer.ts'

const { port, weirUrl } = readArguments()
const client = createClient({ url: weirUrl, key: token, timeoutMs: clientTimeoutMs })
const app = express()
app.use(
  express.json(),
  weirExpress({
    client,
    ask: (request: express.Request) => ({ subject: callerOf(request.body), route: checkedRoute }),
  }),
)
app.post('/v1/check', (_request, response) => {
  response.json(answer)
})
app.listen(port, '127.0.0.1').keepAliveTimeout = 75_000
