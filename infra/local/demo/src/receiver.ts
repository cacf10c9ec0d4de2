import { createServer, type IncomingMessage, type Server } from 'node:http'
import { Webhook } from 'standardwebhooks'

/** Enough for any demo; the oldest go first. */
const deliveriesMax = 1_000
/** Standard Webhooks asks for less than 20 kB. */
const bodyBytesMax = 64_000

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    if (bytes > bodyBytesMax) throw new Error('body too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

type Delivery = Readonly<{ id: string; verified: boolean; received_at: string; body: unknown }>

/** Keeps and prints what was delivered. Returns the status of the answer. */
async function receive(request: IncomingMessage, webhook: Webhook, deliveries: Delivery[]): Promise<number> {
  const body = await readBody(request)
  const header = (name: string) => String(request.headers[name] ?? '')
  const id = header('webhook-id')
  const received_at = new Date().toISOString()
  try {
    const verified = webhook.verify(body, {
      'webhook-id': id,
      'webhook-timestamp': header('webhook-timestamp'),
      'webhook-signature': header('webhook-signature'),
    })
    deliveries.push({ id, verified: true, received_at, body: verified })
    process.stdout.write(`${JSON.stringify({ event: 'verified', id, received_at, body: verified })}\n`)
    return 204
  } catch (error) {
    deliveries.push({ id, verified: false, received_at, body: null })
    process.stdout.write(`${JSON.stringify({ event: 'refused', id, received_at, why: String(error) })}\n`)
    return 400
  } finally {
    if (deliveries.length > deliveriesMax) deliveries.shift()
  }
}

/**
 * Returns what a customer's webhook receiver would be, not yet listening: it checks each delivery with the
 * standardwebhooks library and prints what it verified. GET /deliveries lists the same.
 */
export function createReceiver(secret: string): Server {
  const webhook = new Webhook(secret)
  const deliveries: Delivery[] = []
  return createServer((request, response) => {
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'application/json' }).end(`${JSON.stringify(deliveries)}\n`)
      return
    }
    receive(request, webhook, deliveries).then(
      (status) => response.writeHead(status).end(),
      () => response.writeHead(413, { connection: 'close' }).end(),
    )
  })
}
