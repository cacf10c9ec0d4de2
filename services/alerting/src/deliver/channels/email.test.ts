import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { AlertOf, AlertV1 } from '@weir/contracts/alert.v1.ts'
import { systemClock } from '@weir/core/clock.ts'
import { verifyAddress } from '@weir/policy/address-token.ts'
import type { EndpointOf } from '@weir/policy/policy.ts'
import { SMTPServer } from 'smtp-server'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { channelTools } from '../../testing/channel-tools.ts'
import { createAlertTemplates } from '../alert-templates.ts'
import type { ChannelTools } from './channel.ts'
import { createMailer, email } from './email.ts'

let server: SMTPServer
type Mailer = ReturnType<typeof createMailer>
const mailers: Mailer[] = []
let sender: ReturnType<typeof senderWith>
let received: { readonly to: readonly string[]; readonly message: string }[]
let refusal: { readonly code: number; readonly words: string } | undefined

beforeEach(async () => {
  received = []
  refusal = undefined
  server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    async onData(stream, { envelope }, done) {
      const message = await text(stream)
      if (refusal !== undefined) {
        done(Object.assign(new Error(refusal.words), { responseCode: refusal.code }))
        return
      }
      received.push({ to: envelope.rcptTo.map(({ address }) => address), message })
      done()
    },
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', () => ready()))
  sender = senderWith({})
})
afterEach(async () => {
  // First: a server waits for its connections.
  for (const one of mailers.splice(0)) one.close()
  await new Promise<void>((done) => server.close(() => done()))
})

/** A sender to that server, unless another is given. */
function senderWith({ smtpUrl, ...tools }: Partial<ChannelTools> & { readonly smtpUrl?: () => string }) {
  const { port } = server.server.address() as AddressInfo
  const mailer = createMailer({ smtpUrl: smtpUrl ?? (() => `smtp://127.0.0.1:${port}`), from: 'weir@example.com' })
  mailers.push(mailer)
  const all = channelTools({}, { mailer, ...tools })
  return { send: (to: EndpointOf<'email'>, alert: AlertV1) => email.send(to, alert, all) }
}

const endpoint: EndpointOf<'email'> = {
  name: 'mail',
  type: 'email',
  to: ['ops@example.com', 'finance@example.com'],
  only: {},
  isPaused: false,
}
const alertOf = (subject: string): AlertOf<'weir.limit.blocked'> => ({
  id: '2ed6657d-e927-568b-95e1-2665a8aea6a2',
  type: 'weir.limit.blocked',
  subject,
  time: '2026-11-21T12:00:00Z',
  data: { limit: 'minute', size: 1_000, until: '2026-11-21T13:00:00Z', decision_id: 'd' },
})

test('every recipient gets one message that says what happened, under an id that is the same for every attempt', async () => {
  expect(await sender.send(endpoint, alertOf('acme'))).toMatchObject({ status: 250 })
  await sender.send(endpoint, alertOf('acme'))
  expect(received.map(({ to }) => to)).toEqual([endpoint.to, endpoint.to])
  for (const { message } of received) {
    expect(message).toContain('Subject: acme is blocked by the limit minute')
    expect(message).toContain('Message-ID: <2ed6657d-e927-568b-95e1-2665a8aea6a2.mail@weir>')
    expect(message).toContain('Until: 21 Nov 2026, 13:00 UTC')
    expect(message).toContain('Auto-Submitted: auto-generated')
  }
})

test('a mail about the end of an alert answers the mail about that alert', async () => {
  const period = { period_start: '2026-11-21T00:00:00Z', period_end: '2026-11-22T00:00:00Z', decision_id: 'd' }
  const ended = { resolves: alertOf('acme').id, reached_at: '2026-11-21T12:00:00Z', reason: 'period_ended' }
  const data = { limit: 'day', size: 10, used: 8, percent: 80, ...period, ...ended }
  const id = '01a1fdfa-6d10-4540-81b4-576e9d55a36f'
  await sender.send(endpoint, { ...alertOf('acme'), id, type: 'weir.quota.resolved', data })
  const [{ message } = { message: '' }] = received
  expect(message).toContain(`Message-ID: <${id}.mail@weir>`)
  expect(message).toContain(`In-Reply-To: <${ended.resolves}.mail@weir>`)
  expect(message).toContain('Subject: Resolved: acme has used 80% of its limit day')
})

test('a subject is text and nothing else: neither markup nor a header of its own', async () => {
  await sender.send(endpoint, alertOf('<b>&"x"\r\nBcc: me@example.com'))
  const [{ to, message } = { to: [], message: '' }] = received
  expect(to).toEqual(endpoint.to)
  expect(message.split('\r\n\r\n')[0]).not.toMatch(/^Bcc:/m)
  expect(message).toContain('&lt;b&gt;&amp;&quot;x&quot;')
  expect(message).not.toContain('<strong><b>')
})

test('a template says it in its own words, with values escaped in its HTML; what it does not have in HTML is text alone', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-templates-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  mkdirSync(join(dir, 'customers'))
  const write = (file: string, words: string) => writeFileSync(join(dir, 'customers', file), words)
  write('default.txt', 'Subject: Hello {{subject}}\n\n{{title}}: https://portal.example/{{subject_in_url}}\n')
  write('default.html', '<a href="https://portal.example/{{subject_in_url}}" title=\'{{subject}}\'>{{lines}}</a>')
  write('weir.quota.reached.txt', 'Subject: {{percent}}% used\nOf {{limit}}: {{size}}.')
  const mail: EndpointOf<'email'> = { ...endpoint, to: ['a@a.example'], templates: 'customers' }
  const policyInForce = () => ({ endpoints: new Map([['mail', mail]]) })
  const found = createAlertTemplates({ dir, policyInForce, clock: systemClock })
  expect(found.findProblems()).toEqual([])
  const own = senderWith({ templates: found })
  await own.send(mail, alertOf(`a'<b>/c`))
  const period = { period_start: '2026-11-21T00:00:00Z', period_end: '2026-11-22T00:00:00Z', decision_id: 'd' }
  const data = { limit: 'day', size: 1_000, used: 800, percent: 80, ...period }
  await own.send(mail, { ...alertOf('acme'), type: 'weir.quota.reached', data })
  const [first = '', second = ''] = received.map(({ message }) => message.replaceAll('=\r\n', ''))
  expect(first).toContain(`Subject: Hello a'<b>/c`)
  expect(first).toContain(`a'<b>/c is blocked by the limit minute: https://portal.example/a'%3Cb%3E%2Fc`)
  expect(first).toMatch(/href=(3D)?"https:\/\/portal.example\/a&#39;%3Cb%3E%2Fc" title=(3D)?'a&#39;&lt;b&gt;\/c'/)
  expect(first).toContain('Until: 21 Nov 2026, 13:00 UTC<br>Limit size: 1,000')
  expect(second).toContain('Subject: 80% used')
  expect(second).toContain('Of day: 1000.')
  expect(second).not.toContain('text/html')
})

test('a mail to a contact is unsubscribed from by one click, and its words name the link; other mail has none', async () => {
  const keys = 'a key that is long enough to sign mails'
  const sendWith = async (keyText: string, to: EndpointOf<'email'>) => {
    const links = { unsubscribeKeys: () => keyText, consoleUrl: new URL('https://weir.example.com') }
    await senderWith(links).send(to, alertOf('acme'))
  }
  const contact = { ...endpoint, name: 'customers/email-0123456789ab' }
  await sendWith(keys, contact)
  await sendWith(keys, endpoint)
  await sendWith('', contact)
  const [first = '', ...others] = received.map(({ message }) =>
    message
      .replaceAll('=\r\n', '')
      .replaceAll('\r', '')
      .replace(/\n[ \t]+/g, ' '),
  )
  const [, token = ''] = /^List-Unsubscribe: <https:\/\/weir.example.com\/unsubscribe\/(.*)>$/m.exec(first) ?? []
  expect(verifyAddress([keys], 'unsubscribe', token)).toEqual({ subject: 'acme', addressHash: '0123456789ab' })
  expect(first).toMatch(/^List-Unsubscribe-Post: List-Unsubscribe=One-Click$/m)
  expect(first.split(`https://weir.example.com/unsubscribe/${token}`)).toHaveLength(4)
  for (const message of others) expect(message).not.toMatch(/unsubscribe/i)
})

test('an unconfirmed address gets a link to confirm it, signed for that alone, and nothing where there is no link', async () => {
  const keys = 'a key that is long enough to sign mails'
  const unconfirmed = { ...endpoint, name: 'customers/confirm-0123456789ab' }
  const sendWith = (keyText: string) =>
    senderWith({ unsubscribeKeys: () => keyText, consoleUrl: new URL('https://weir.example.com') }).send(
      unconfirmed,
      alertOf('acme'),
    )
  expect(await sendWith('')).toMatchObject({ error: expect.stringContaining('no confirmation link can be made') })
  await sendWith(keys)
  const [first = '', ...more] = received.map(({ message }) => message.replaceAll('=\r\n', ''))
  expect(more).toEqual([])
  const [, token = ''] = /https:\/\/weir.example.com\/confirm\/([\w.-]+)/.exec(first) ?? []
  expect(verifyAddress([keys], 'confirm', token)).toEqual({ subject: 'acme', addressHash: '0123456789ab' })
  expect(first).toContain('Subject: Confirm alerts about acme')
  expect(first).not.toMatch(/blocked|List-Unsubscribe/)
})

test('a refusal of the server, and a closed port, are named in the result', async () => {
  refusal = { code: 552, words: 'mailbox full' }
  expect(await sender.send(endpoint, alertOf('acme'))).toMatchObject({
    status: 552,
    error: expect.stringContaining('mailbox full'),
  })
  const gone = senderWith({ smtpUrl: () => 'smtp://127.0.0.1:1' })
  expect(await gone.send(endpoint, alertOf('acme'))).toMatchObject({
    status: 0,
    error: expect.stringContaining('ECONNREFUSED'),
  })
  const none = senderWith({ smtpUrl: () => '' })
  expect(await none.send(endpoint, alertOf('acme'))).toMatchObject({ status: 0, error: 'WEIR_SMTP_URL is not set' })
})

test('a replaced address or password of the server is used from the next message on', async () => {
  const { port } = server.server.address() as AddressInfo
  let smtpUrl = 'smtp://127.0.0.1:1'
  const moved = senderWith({ smtpUrl: () => smtpUrl })
  expect(await moved.send(endpoint, alertOf('acme'))).toMatchObject({ status: 0 })
  smtpUrl = `smtp://127.0.0.1:${port}`
  expect(await moved.send(endpoint, alertOf('acme'))).toMatchObject({ status: 250 })
})
