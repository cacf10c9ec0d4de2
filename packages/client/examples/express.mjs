// Holds a limit per user of this application, by an attribute; the subject is the application itself.
import { createClient, weirExpress } from '@weir/client'
import express from 'express'

const client = createClient({ url: process.env.WEIR_URL, key: process.env.WEIR_KEY, onUnavailable: 'allow' })
const app = express()
const userOf = (request) => request.get('x-user') ?? 'nobody'
app.use(weirExpress({ client, ask: (request) => ({ subject: 'shop', attributes: { user: userOf(request) } }) }))
app.get('/hello', (request, response) => {
  response.json({ hello: 'world', left: request.weir.limits[0]?.remaining })
})
const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log(`port ${server.address().port}`))
