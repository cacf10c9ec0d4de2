import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inTurn } from '@weir/clickhouse/delivery-order.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { Webhook } from 'standardwebhooks'
import { afterAll, expect, test } from 'vitest'
import { startMailSink } from '../../support/alerting/mail-sink.ts'
import { openAlertingStack, type Received } from '../../support/alerting/open-alerting.ts'
import { forFile } from '../../support/opened.ts'
import type { ServiceProcess } from '../../support/service-process.ts'
import { startConsole } from '../../support/start-console.ts'
import { until } from '../../support/until.ts'

const acmeSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const templates = mkdtempSync(join(tmpdir(), 'weir-test-templates-'))
let alerting: ServiceProcess
const sink = await forFile(startMailSink())
const stack = await forFile(
  openAlertingStack(['ops'], (url) => ({
    endpoints: { customers: { type: 'subject', templates: 'customers', only: { types: ['weir.quota.reached'] } } },
    subjects: {
      acme: {
        plan: 'free',
        contact: {
          email: ['one@acme.example', 'two@acme.example'],
          webhook: { url: url('/acme'), secretEnv: 'ACME_SECRET', allowPrivate: true },
        },
      },
      bolt: { plan: 'free', contact: { email: ['bolt@bolt.example'] } },
      cargo: { plan: 'free' },
      echo: { plan: 'free', ownAlerts: true },
      // As a release before 0.11 stored it.
      dart: { plan: 'free', contact: { email: ['dart@dart.example'], digest: 'daily', language: 'de' } },
    },
  })),
)
mkdirSync(join(templates, 'customers'))
const words = 'Subject: {{limit}}: {{percent}}% used\n\nhttps://portal.example/{{subject_in_url}}\n'
writeFileSync(join(templates, 'customers', 'weir.quota.reached.txt'), words)
const links = { WEIR_UNSUBSCRIBE_KEY: 'a key that is long enough to sign mails' }
const servers = { WEIR_KAFKA_BROKERS: stack.kafka.address, WEIR_CLICKHOUSE_URL: stack.tables.url }
const admin = await forFile(startConsole({ ...links, ...servers }))
const environment = {
  ...links,
  WEIR_SMTP_URL: sink.url,
  ACME_SECRET: acmeSecret,
  WEIR_TEMPLATES_DIR: templates,
  WEIR_CONSOLE_PUBLIC_URL: admin.environment.WEIR_CONSOLE_URL,
}
afterAll(() => void rmSync(templates, { recursive: true }))

const mailsTo = (address: string) => sink.mails.filter(({ to }) => to.includes(address))
const at = (path: string) => stack.received.filter((one) => one.path === path)
const subjectsAt = (path: string) => at(path).map(({ body }: Received) => JSON.parse(body).data.subject)
/** The last outcome of each delivery of a subject's alerts; of addresses without their hash. */
async function outcomes(subject: string): Promise<readonly string[]> {
  const rows = await stack.rows<{ endpoint: string; last: string }>(
    `SELECT endpoint, argMax(outcome, ${inTurn}) AS last FROM weir.deliveries
      WHERE subject = '${subject}' GROUP BY alert_id, endpoint`,
  )
  return rows.map((row) => `${row.endpoint.replace(/-.*/, '')} ${row.last}`).sort()
}

/** Targets of the alerts about a subject, each of which is delivered in the end. */
const due = {
  acme: ['customers/email', 'customers/email', 'customers/webhook', 'ops'],
  bolt: ['customers/email', 'ops'],
  cargo: ['ops'],
  dart: ['customers/email', 'ops'],
}

/** Waits until `count` alerts of each subject are delivered to all its targets, and to no others. */
async function delivered(count: number): Promise<void> {
  for (const [subject, targets] of Object.entries(due)) {
    const all = targets.flatMap((name) => Array.from({ length: count }, () => `${name} delivered`))
    const isDelivered = async () => (await outcomes(subject)).join() === all.join()
    await waitUntil(isDelivered, { deadlineMs: 60_000, everyMs: 50 })
    expect([subject, await outcomes(subject)]).toEqual([subject, all])
  }
}

test('Each address of a contact gets the alert of its subject once, in its template, and no other subject’s', async () => {
  alerting = await stack.start(environment)
  await stack.decide(Object.keys(due), 800)
  await delivered(1)
  for (const address of ['one@acme.example', 'two@acme.example', 'bolt@bolt.example', 'dart@dart.example']) {
    const [mail, ...more] = mailsTo(address)
    expect([address, mail?.to, more]).toEqual([address, [address], []])
    expect(mail?.message).toContain('Subject: day: 80% used')
  }
  expect(mailsTo('bolt@bolt.example')[0]?.message).toContain('https://portal.example/bolt')
  expect(sink.mails).toHaveLength(4)
  expect(subjectsAt('/acme')).toEqual(['acme'])
  for (const { headers, body } of at('/acme')) {
    const signed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
    expect(() => new Webhook(acmeSecret).verify(body, signed)).not.toThrow()
  }
  await alerting.kill('SIGTERM')
}, 120_000)

test('Whichever process is killed, no address misses an alert, and a repeat has the same id', async () => {
  const before = sink.mails.length
  for (const step of ['publish', 'enqueue', 'enqueue_commit', 'attempt']) {
    const doomed = await stack.launch({ ...environment, WEIR_CRASH_AT: `alerting.${step}` })
    if (step === 'publish') await stack.decide(Object.keys(due), 1_000)
    await doomed.ended
  }
  alerting = await stack.start(environment)
  await delivered(2)
  const sent = sink.mails.slice(before).map(({ to, message }) => `${to} ${/^Message-ID: (.*)$/m.exec(message)?.[1]}`)
  expect(new Set(sent).size).toBe(4)
  expect(new Set(at('/acme').map(({ headers }) => headers['webhook-id'])).size).toBe(2)
}, 240_000)

test('A test is sent to the contact of the subject that it names', async () => {
  const { body } = await admin.ask<{ id: string }>('POST /v1/endpoints/customers/test', { subject: 'acme' })
  for (const address of ['one@acme.example', 'two@acme.example'])
    await until(() => mailsTo(address).some(({ message }) => message.includes(body.id)))
  await until(() => at('/acme').some(({ headers }) => headers['webhook-id'] === body.id))
}, 240_000)

test('An address that unsubscribes by one click gets no more mail, and the others of its contact do', async () => {
  const [{ message } = { message: '' }] = mailsTo('two@acme.example')
  const [, link = ''] = /^List-Unsubscribe:\s+<(.*)>\r$/m.exec(message) ?? []
  const counts = () => [mailsTo('one@acme.example').length, mailsTo('two@acme.example').length, at('/acme').length]
  const [one = 0, two = 0, webhook = 0] = counts()
  const changes = await alerting.metric('weir_policy_changes_total{result="applied"}')
  expect((await fetch(link)).status).toBe(200)
  expect((await admin.ask<{ items: object[] }>('GET /v1/unsubscribed')).body.items).toEqual([])
  const click = { method: 'POST', body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }) }
  expect((await fetch(link, click)).status).toBe(200)
  expect((await admin.ask<{ items: object[] }>('GET /v1/unsubscribed')).body.items).toMatchObject([{ name: 'acme' }])
  await until(async () => (await alerting.metric('weir_policy_changes_total{result="applied"}')) > changes)
  await stack.decide(['acme'], 8_000, { size: 10_000 })
  await until(() => mailsTo('one@acme.example').length > one && at('/acme').length > webhook)
  await until(async () => (await outcomes('acme')).filter((outcome) => outcome === 'ops delivered').length === 3)
  expect(counts()).toEqual([one + 1, two, webhook + 1])
}, 120_000)

test('A customer adds an address, which gets nothing but its link until it is confirmed, then alerts, and none once it unsubscribes', async () => {
  const address = 'echo@echo.example'
  const applied = () => alerting.metric('weir_policy_changes_total{result="applied"}')
  const opsGot = async (count: number) =>
    await until(async () => (await outcomes('echo')).filter((one) => one === 'ops delivered').length === count)
  const mails = () => mailsTo(address).map(({ message }) => /^Subject: (.*)\r$/m.exec(message)?.[1])
  const click = async (pattern: RegExp) => {
    const message = mailsTo(address).at(-1)?.message.replaceAll('=\r\n', '') ?? ''
    const before = await applied()
    expect((await fetch(pattern.exec(message)?.[1] ?? '', { method: 'POST' })).status).toBe(200)
    await until(async () => (await applied()) > before)
  }
  const chosen = { addresses: [address], percents: [50] }
  expect((await admin.ask('PUT /v1/subjects/echo/own-alerts', chosen)).status).toBe(200)
  await until(() => mails().length === 1)
  await stack.decide(['echo'], 500)
  await opsGot(1)
  expect(mails()).toEqual(['Confirm alerts about echo'])
  await click(/(http:\S+\/confirm\/[\w.-]+)/)
  await stack.decide(['echo'], 800)
  await until(() => mails().length === 2)
  expect(mails()[1]).toBe('day: 80% used')
  await click(/^List-Unsubscribe:\s+<(.*)>\r$/m)
  await stack.decide(['echo'], 1_000)
  await opsGot(3)
  expect(mails()).toHaveLength(2)
}, 120_000)
