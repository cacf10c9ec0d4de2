/**
 * The demo around Weir: the API that it protects, and the receiver of its webhooks. One process, because a Node that
 * does nothing has 60 MB. `main.ts --upstream PORT --receiver PORT`, the secret in WEIR_DEMO_WEBHOOK_SECRET.
 */
import { parseArgs } from 'node:util'
import { createReceiver } from './receiver.ts'
import { createUpstream } from './upstream.ts'

const { values } = parseArgs({ options: { upstream: { type: 'string' }, receiver: { type: 'string' } } })
const upstream = createUpstream().listen(Number(values.upstream), '127.0.0.1')
const receiver = createReceiver(process.env.WEIR_DEMO_WEBHOOK_SECRET ?? '')
receiver.listen(Number(values.receiver), '127.0.0.1')
process.once('SIGTERM', () => {
  for (const server of [upstream, receiver]) {
    server.close()
    server.closeAllConnections()
  }
})
