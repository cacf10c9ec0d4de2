import type { IncomingHttpHeaders } from 'node:http'
import type { AlertOf } from '@weir/contracts/alert.v1.ts'
import { endpointSecrets } from '@weir/policy/endpoint-secret.ts'
import type { EndpointOf } from '@weir/policy/policy.ts'
import type { Outgoing } from '@weir/runtime/outgoing/outgoing.ts'
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import { channelTools } from '../../testing/channel-tools.ts'
import { openReceiver } from '../../testing/receiver.ts'
import type { ChannelTools } from './channel.ts'
import { createAlertSender } from './channels.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const next = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

const alert: AlertOf<'weir.quota.reached'> = {
  id: '2ed6657d-e927-568b-95e1-2665a8aea6a2',
  type: 'weir.quota.reached',
  subject: 'größe',
  time: '2026-01-02T03:04:05.006Z',
  data: {
    limit: 'day',
    size: 5_000,
    used: 4_000,
    percent: 80,
    decision_id: '019b7b5e-0000-7000-8000-000000000000',
    period_start: '2026-01-02T00:00:00.000Z',
    period_end: '2026-01-03T00:00:00.000Z',
  },
}

let receiver: Awaited<ReturnType<typeof openReceiver>>
afterEach(() => receiver.close())
beforeEach(async () => {
  receiver = await openReceiver((response) => response.writeHead(204).end())
})

const toolsOf = (environment: Readonly<Record<string, string>>, more: Partial<ChannelTools> = {}) =>
  channelTools(environment, { outgoing: receiver.outgoing, ...more })
const webhook = { name: 'ops', only: {}, isPaused: false, type: 'webhook', secretEnv: 'SECRET' } as const
const localUrl = (host = '127.0.0.1') => receiver.url.replace('127.0.0.1', host)
const send = ({ host = '127.0.0.1', allowPrivate = true, secrets = [secret] } = {}) =>
  createAlertSender(toolsOf({ SECRET: secrets.join(' ') }))({ ...webhook, url: localUrl(host), allowPrivate }, alert)

const signedHeaders = ({ headers }: { headers: IncomingHttpHeaders }) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))

it('An attempt whose words cannot be made has failed, and does not reject', async () => {
  const words = { text: 'Subject: x\n\n{{limit}}', html: undefined }
  const odd = { ...alert, type: 'weir.endpoint.test', data: { endpoint: 'ops', limit: { toString: 1 } } } as never
  const mail = { name: 'mail', only: {}, isPaused: false, type: 'email', to: ['a@example.com'] } as never
  const send = createAlertSender(toolsOf({}, { templates: { find: () => words } }))
  expect(await send(mail, odd)).toMatchObject({ status: 0, error: expect.any(String) })
})

describe('sending a webhook', () => {
  it('is verified by the standardwebhooks library, byte for byte', async () => {
    expect(await send()).toMatchObject({ status: 204 })
    const [first = { headers: {}, body: '' }] = receiver.received
    expect(first.headers['webhook-id']).toBe(alert.id)
    const verified = new Webhook(secret).verify(first.body, signedHeaders(first))
    expect(verified).toEqual({ type: alert.type, timestamp: alert.time, data: { subject: 'größe', ...alert.data } })
    expect(() => new Webhook(secret).verify(`${first.body} `, signedHeaders(first))).toThrow()
  })

  it('is signed by a secret of Weir for an endpoint that names none, also while its key is replaced', async () => {
    const keys = ['k'.repeat(32), 'o'.repeat(32)]
    const tools = toolsOf({}, { unsubscribeKeys: () => keys.join(',') })
    const { secretEnv: _, ...own } = webhook
    await createAlertSender(tools)({ ...own, url: localUrl(), allowPrivate: true }, alert)
    const [first = { headers: {}, body: '' }] = receiver.received
    for (const one of endpointSecrets(keys, 'ops'))
      expect(() => new Webhook(one).verify(first.body, signedHeaders(first))).not.toThrow()
    const [other = ''] = endpointSecrets(keys, 'other')
    expect(() => new Webhook(other).verify(first.body, signedHeaders(first))).toThrow()
  })

  it('is verified with the old secret and with the new one while one replaces the other', async () => {
    await send({ secrets: [next, secret] })
    const [first = { headers: {}, body: '' }] = receiver.received
    for (const one of [next, secret])
      expect(() => new Webhook(one).verify(first.body, signedHeaders(first))).not.toThrow()
    const other = `whsec_${Buffer.alloc(32, 8).toString('base64')}`
    expect(() => new Webhook(other).verify(first.body, signedHeaders(first))).toThrow()
  })

  it('is refused by the receiver when it is old', async () => {
    await send()
    const [first = { headers: {}, body: '' }] = receiver.received
    const seconds = String(Number(first.headers['webhook-timestamp']) - 400)
    const signature = new Webhook(secret).sign(alert.id, new Date(Number(seconds) * 1_000), first.body)
    const old = { ...signedHeaders(first), 'webhook-timestamp': seconds, 'webhook-signature': signature }
    expect(() => new Webhook(secret).verify(first.body, old)).toThrow('too old')
  })

  it.each([301, 400, 500])('fails on an answer of %d and follows no redirect', async (code) => {
    receiver.answer = (response) => response.writeHead(code, { location: 'http://127.0.0.1:1/' }).end('why')
    expect(await send()).toMatchObject({ status: code, error: expect.stringContaining(`answered ${code}`) })
    expect(receiver.received).toHaveLength(1)
  })

  it('says when the endpoint wants to be asked again, and when never', async () => {
    receiver.answer = (response) => response.writeHead(429, { 'retry-after': '90' }).end()
    expect(await send()).toMatchObject({ status: 429, retryAfterMs: 90_000, verdict: undefined })
    receiver.answer = (response) => response.writeHead(410).end()
    expect(await send()).toMatchObject({ status: 410, verdict: 'gone' })
  })

  it('reads no more of an endless answer than is kept of it', async () => {
    let written = 0
    receiver.answer = (response) => {
      response.writeHead(200)
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, 'x'))) written += 65_536
      }
      response.on('drain', more)
      more()
    }
    const result = await send()
    expect([result.status, result.error]).toEqual([200, undefined])
    expect(written).toBeLessThan(16_000_000)
  })

  it('names the problem when the connection breaks, or there is no secret', async () => {
    expect(await send({ secrets: [] })).toEqual({ status: 0, error: 'SECRET holds no secret', answer: '' })
    expect(receiver.received).toHaveLength(0)
    receiver.answer = (response) => response.destroy()
    expect(await send()).toMatchObject({ status: 0, error: expect.stringMatching(/\w/) })
  })

  it.each(['127.0.0.1', 'localhost'])('never reaches %s without allowPrivate', async (host) => {
    const result = await send({ host, allowPrivate: false })
    expect(result).toMatchObject({ status: 0, error: expect.stringMatching(/not (a )?public/) })
    expect(receiver.received).toHaveLength(0)
  })
})

describe('sending to Slack', () => {
  const endpoint: EndpointOf<'slack'> = {
    name: 'chat',
    type: 'slack',
    urlEnv: 'CHAT',
    allowPrivate: true,
    only: {},
    isPaused: false,
  }

  it('posts blocks in which no name of a subject becomes a mention', async () => {
    receiver.answer = (response) => response.writeHead(200).end('ok')
    const sendSlack = createAlertSender(toolsOf({ CHAT: localUrl() }))
    const named = { ...alert, subject: '<!channel>&co' }
    expect(await sendSlack(endpoint, named)).toMatchObject({ status: 200, answer: '' })
    const { text: shown, blocks } = JSON.parse(receiver.received[0]?.body ?? '')
    expect(shown).toBe('&lt;!channel&gt;&amp;co has used 80% of its limit day')
    expect(blocks.map(({ type }: { type: string }) => type)).toEqual(['header', 'section', 'context'])
    expect(blocks[0].text).toMatchObject({ type: 'plain_text' })
    expect(blocks[1].text.text).toContain('Used: 4,000 of 5,000')
    expect(blocks[1].text.text).not.toMatch(/<!/)
  })

  it('has the words of its template, in which a value is no markup', async () => {
    const find = () => ({ text: '*{{subject}}* <https://portal.example/{{subject_in_url}}|Usage>', html: undefined })
    let body = ''
    const stub: Outgoing = {
      send: async (asked) => {
        body = String(asked.body)
        return { status: 200, headers: {}, isCut: false, body: Buffer.from('') }
      },
      close: async () => undefined,
    }
    const own = createAlertSender(toolsOf({ CHAT: 'https://hooks.example/' }, { templates: { find }, outgoing: stub }))
    await own(endpoint, { ...alert, subject: '<!channel>' })
    const { blocks } = JSON.parse(body)
    expect(blocks).toEqual([
      {
        type: 'section',
        text: {
          type: 'mrkdwn',
          text: '*&lt;!channel&gt;* <https://portal.example/!channel%3E|Usage>'.replace('/!', '/%3C!'),
          verbatim: true,
        },
      },
    ])
  })

  it('sends nothing without a URL, and the attempt says so', async () => {
    expect(await createAlertSender(toolsOf({}))(endpoint, alert)).toEqual({
      status: 0,
      error: 'CHAT holds no URL',
      answer: '',
    })
  })
})

test('The answer of an endpoint that may be within the network is not kept', async () => {
  const said = { status: 200, headers: {}, isCut: false, body: Buffer.from('what it says') }
  const stub: Outgoing = { send: async () => said, close: async () => undefined }
  const sendTo = createAlertSender(toolsOf({ SECRET: secret }, { outgoing: stub }))
  const keptOf = async (allowPrivate: boolean) =>
    (await sendTo({ ...webhook, url: 'http://hooks.example/', allowPrivate }, alert)).answer
  expect([await keptOf(false), await keptOf(true)]).toEqual(['what it says', ''])
})
