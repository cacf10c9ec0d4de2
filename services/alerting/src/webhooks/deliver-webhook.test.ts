import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createWebhookSender, type WebhookSender } from './deliver-webhook.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const message = { id: '01890a5d-ac96-5abc-8def-0123456789ab', body: '{"type":"weir.quota.reached","data":{"größe":1}}' }

let server: Server
let sender: WebhookSender
let received: { headers: IncomingHttpHeaders; body: string }[]
let status: number

beforeEach(async () => {
  received = []
  status = 204
  sender = createWebhookSender()
  server = createServer(async (request, response) => {
    received.push({ headers: request.headers, body: await text(request) })
    response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end()
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
})
afterEach(async () => {
  await sender.close()
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
})

const endpoint = (allowPrivate: boolean, host = '127.0.0.1') => {
  const { port } = server.address() as AddressInfo
  return { name: 'ops', url: `http://${host}:${port}/`, secretEnv: 'SECRET', allowPrivate }
}

describe('sending a webhook', () => {
  it('is verified by the standardwebhooks library, byte for byte', async () => {
    expect(await sender.send(endpoint(true), secret, message)).toBe(204)
    const [{ headers, body } = { headers: {}, body: '' }] = received
    expect(body).toBe(message.body)
    expect(headers['webhook-id']).toBe(message.id)
    const signed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
    expect(new Webhook(secret).verify(body, signed)).toEqual(JSON.parse(message.body))
    expect(() => new Webhook(secret).verify(`${body} `, signed)).toThrow()
  })

  it.each([301, 400, 500])('fails on an answer of %d and follows no redirect', async (code) => {
    status = code
    await expect(sender.send(endpoint(true), secret, message)).rejects.toThrow(`answered ${code}`)
    expect(received).toHaveLength(1)
  })

  it.each(['127.0.0.1', 'localhost'])('never reaches %s without allowPrivate', async (host) => {
    await expect(sender.send(endpoint(false, host), secret, message)).rejects.toThrow(/not (a )?public/)
    expect(received).toHaveLength(0)
  })
})
