import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { createOutgoing } from '@weir/runtime/outgoing/outgoing.ts'

/** A server that receives alerts until it is closed, and what reaches it. */
export async function openReceiver(answer: (response: ServerResponse) => void) {
  const received: { readonly headers: IncomingHttpHeaders; readonly body: string }[] = []
  const outgoing = createOutgoing()
  const close = async () => {
    server.closeAllConnections()
    await outgoing.close()
    await new Promise((done) => server.close(done))
  }
  const receiver = { answer, received, outgoing, close, url: '' }
  const server = createServer(async (request, response) => {
    received.push({ headers: request.headers, body: await text(request) })
    receiver.answer(response)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  return receiver
}
