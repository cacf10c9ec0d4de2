import { waitUntil } from '@weir/runtime/wait-until.ts'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startMailSink } from '../../support/alerting/mail-sink.ts'
import { type AlertingStack, openAlertingStack, type Received } from '../../support/alerting/open-alerting.ts'
import { type RunningConsole, startConsole } from '../../support/start-console.ts'

const acmeSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
let stack: AlertingStack
let sink: Awaited<ReturnType<typeof startMailSink>>
let admin: RunningConsole
let environment: Readonly<Record<string, string>>
beforeAll(async () => {
  sink = await startMailSink()
  stack = await openAlertingStack(['ops'], (url) => ({
    endpoints: { customers: { type: 'subject', only: { types: ['weir.quota.reached'] } } },
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
    },
  }))
  environment = { WEIR_SMTP_URL: sink.url, ACME_SECRET: acmeSecret }
  admin = await startConsole({ WEIR_KAFKA_BROKERS: stack.kafka.address, WEIR_CLICKHOUSE_URL: stack.tables.url })
}, 120_000)
afterAll(async () => {
  await admin?.close()
  await stack?.close()
  await sink?.close()
})

const until = async (condition: () => boolean | Promise<boolean>, deadlineMs = 60_000) =>
  expect(await waitUntil(condition, { deadlineMs, everyMs: 50 })).toBe(true)
const mailsTo = (address: string) => sink.mails.filter(({ to }) => to.includes(address))
const at = (path: string) => stack.received.filter((one) => one.path === path)
const subjectsAt = (path: string) => at(path).map(({ body }: Received) => JSON.parse(body).data.subject)
/** The last outcome of each delivery of a subject's alerts; of addresses without their hash. */
async function outcomes(subject: string): Promise<readonly string[]> {
  const rows = await stack.rows<{ endpoint: string; last: string }>(
    `SELECT endpoint, argMax(outcome, (at, attempt)) AS last FROM weir.deliveries
      WHERE subject = '${subject}' GROUP BY alert_id, endpoint`,
  )
  return rows.map((row) => `${row.endpoint.replace(/-.*/, '')} ${row.last}`).sort()
}

test('Each address of a contact gets the alert of its subject once, whichever process is killed, and no other subject’s', async () => {
  for (const step of ['publish', 'enqueue', 'enqueue_commit']) {
    const doomed = await stack.launch({ ...environment, WEIR_CRASH_AT: `alerting.${step}` })
    if (step === 'publish') await stack.decide(['acme', 'bolt', 'cargo'], 800)
    await doomed.ended
  }
  await stack.start(environment)
  const due = {
    acme: ['customers/email', 'customers/email', 'customers/webhook', 'ops'],
    bolt: ['customers/email', 'ops'],
    cargo: ['ops'],
  }
  for (const [subject, targets] of Object.entries(due)) {
    const delivered = targets.map((name) => `${name} delivered`)
    await until(async () => (await outcomes(subject)).join() === delivered.join())
  }
  for (const [address, subject] of [
    ['one@acme.example', 'acme'],
    ['two@acme.example', 'acme'],
    ['bolt@bolt.example', 'bolt'],
  ] as const) {
    const [mail, ...more] = mailsTo(address)
    expect([address, mail?.to, more]).toEqual([address, [address], []])
    expect(mail?.message).toContain(`Subject: ${subject} has used 80 % of its limit day`)
  }
  expect(sink.mails).toHaveLength(3)
  expect(subjectsAt('/acme')).toEqual(['acme'])
  for (const { headers, body } of at('/acme')) {
    const signed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
    expect(() => new Webhook(acmeSecret).verify(body, signed)).not.toThrow()
  }
}, 240_000)

test('A test is sent to the contact of one subject, and redelivery to the addresses that the contact has by then', async () => {
  const accepted = await admin.ask<{ id: string }>('POST /v1/endpoints/customers/test', { subject: 'acme' })
  expect(accepted.status).toBe(202)
  await until(() => mailsTo('one@acme.example').some(({ message }) => message.includes(accepted.body.id)))
  await until(() => at('/acme').some(({ headers }) => headers['webhook-id'] === accepted.body.id))
  expect((await admin.ask('POST /v1/endpoints/customers/test', {})).status).toBe(400)
  expect((await admin.ask('POST /v1/endpoints/customers/test', { subject: 'cargo' })).status).toBe(400)

  const [alert] = await stack.rows<{ id: string }>(
    `SELECT toString(id) AS id FROM weir.alerts FINAL WHERE subject = 'bolt' AND percent = 80`,
  )
  const again = { requested: 1 }
  const redeliver = `POST /v1/alerts/${alert?.id}/redeliver`
  const sent = mailsTo('bolt@bolt.example').length
  expect((await admin.ask(redeliver, { endpoint: 'customers' })).body).toEqual(again)
  await until(() => mailsTo('bolt@bolt.example').length === sent + 1)

  expect((await admin.ask('PUT /v1/subjects/bolt', { plan: 'free' })).status).toBe(200)
  expect((await admin.ask(redeliver, { endpoint: 'customers' })).body).toEqual({ requested: 0 })
}, 240_000)
