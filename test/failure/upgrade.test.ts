import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startLeasingApp, totalOf } from '../support/client/leasing-apps.ts'
import { countAlerts } from '../support/failure/alerts.ts'
import { openCounter } from '../support/failure/count.ts'
import { failurePolicy, leasedSubjects } from '../support/failure/failure-policy.ts'
import { checkOutRelease } from '../support/failure/released-tree.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'
import { weirOn } from '../support/failure/stack-command.ts'
import { untilSettled } from '../support/failure/until-settled.ts'
import { runWeir } from '../support/weir-up.ts'

/** A policy with everything that the release has and this version has not. */
const policy = failurePolicy({ coalesce: false })
  .replace('plans:\n', 'plans:\n  paid: { limits: [wide-day], prices: api, budget: { amount: "20.00" } }\n')
  .replace(
    'endpoints:\n',
    `prices:
  api: { currency: EUR, lines: [{ name: all, measure: units, tiers: [{ unit_amount: "0.5" }] }] }
endpoints:
  customers: { type: subject, only: { types: [weir.alerts.digest, weir.quota.reached] } }
`,
  )
  .replace(
    'subjects:\n',
    'subjects:\n  payer: { plan: paid, contact: { email: [a@payer.example], digest: daily, language: de } }\n',
  )

let release: ReturnType<typeof checkOutRelease>
let stack: Stack
/** An invoice that the release closed, and a link to a customer's page that it made. */
let invoice: { readonly id: string; readonly document: string }
let portal = ''
beforeAll(async () => {
  release = checkOutRelease()
  // The tables are this version's from the start: migrations are an upgrade's first step.
  const environment = { WEIR_PORTAL_KEY: 'a key that is long enough to sign links' }
  stack = await startStack({ ingress: 2, moreMetering: 1, root: release.root, policy, environment })
  const month = new Date(new Date().setUTCDate(0)).toISOString().slice(0, 7)
  const body = { period: month, subjects: ['payer'], grace: '1ms', accept_gaps: 'a test' }
  // The history of the policy is a moment behind the policy.
  const closed = await waitUntil(
    async () => (await ask<{ items?: { id: string }[] }>('/v1/invoices', body)).items?.[0],
    { deadlineMs: 60_000 },
  )
  if (closed === undefined) throw new Error('the release closed no month')
  const { id } = closed
  invoice = { id, document: await (await open(`/v1/invoices/${id}`)).text() }
  portal = (await ask<{ token: string }>('/v1/subjects/payer/portal', {})).token
}, 900_000)
afterAll(async () => {
  await stack?.close()
  release?.remove()
})

const open = (path: string, body?: object, token = stack.secrets.adminToken) =>
  fetch(`http://127.0.0.1:${stack.ports.console}${path}`, {
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
  })
const ask = async <T>(path: string, body?: object) => (await (await open(path, body)).json()) as T

/** What the release stored of what this version has not: it stops nothing, and says what to use. */
async function expectReadHere(): Promise<void> {
  const gone = await open(`/v1/invoices/${invoice.id}`)
  expect([gone.status, ((await gone.json()) as { detail: string }).detail]).toEqual([
    410,
    expect.stringContaining('weir.invoices'),
  ])
  expect((await open(`/invoices/${invoice.id}`)).status).toBe(200)
  expect((await open('/v1/usage?subject=payer', undefined, portal)).status).toBe(200)
  expect(await ask('/v1/spend?subject=payer')).toMatchObject({ quote: { currency: 'EUR' } })
  const client = connectClickhouse(stack.addresses.clickhouse, 'test')
  const stored = await readRows<object>(client, 'SELECT document FROM weir.invoices')
  await client.close()
  expect(stored).toEqual([{ document: invoice.document }])
  const written = join(stack.dir, 'exported.yaml')
  writeFileSync(written, await (await open('/v1/policy')).text())
  const { code, stderr } = await runWeir(['check', '--policy', written])
  expect([code, stderr]).toEqual([
    0,
    expect.stringMatching(/paid\.budget: [\s\S]* "budget-paid": [\s\S]*contact\.digest: .*\n.*contact\.language: /),
  ])
}

/** What applications were admitted with leases, under a policy that is taken back before the release returns. */
const leased: { readonly reported: number; readonly counted: number; readonly units: number }[] = []

async function leaseHere(): Promise<void> {
  const before = join(stack.dir, 'policy.yaml')
  const file = join(stack.dir, 'leased.yaml')
  const subjects = leasedSubjects.map((subject) => `  ${subject}: { plan: leased }\n`).join('')
  const text = readFileSync(before, 'utf8')
    .replace('plans:\n', 'plans:\n  leased: { limits: [wide-day], clientLease: 1s, coalesce: 1s }\n')
    .replace('subjects:\n', `subjects:\n${subjects}`)
  writeFileSync(file, text)
  await weirOn(stack, 'apply', '--policy', file)
  const url = `http://127.0.0.1:${stack.ports.api}`
  // They ask and pause in turn, so that leases are given back.
  const settings = { url, token: stack.secrets.adminToken, windowMs: 86_400_000, env: { PAUSE_MS: '1500' } }
  const start = (subject: string) => startLeasingApp({ ...settings, subject, perSecond: 400, seconds: 20 })
  const apps = leasedSubjects.map(start)
  await Promise.all(apps.map(({ ended }) => ended))
  await untilSettled(stack)
  const counter = openCounter(stack.addresses.clickhouse)
  for (const [at, app] of apps.entries()) {
    const said = app.said()
    expect(said).toMatchObject({ isEnd: true, failed: 0, leases: { lost: 0 } })
    expect(said.leases.returned).toBeGreaterThan(0)
    leased.push({ reported: totalOf([said]), ...(await counter.admittedOf(leasedSubjects[at] ?? '')) })
  }
  await counter.close()
  process.stdout.write(`  with leases: ${JSON.stringify(leased)}\n`)
  for (const { reported, counted, units } of leased) expect([counted, units]).toEqual([reported, reported])
  await weirOn(stack, 'apply', '--policy', before, '--yes')
}

/** The release asks the tables that this version filled. */
async function expectLeasedThere(): Promise<void> {
  expect(leased).toHaveLength(leasedSubjects.length)
  for (const [at, { reported }] of leased.entries()) {
    const usage = await ask<object>(`/v1/usage?subject=${leasedSubjects[at]}&step=total`)
    expect(usage).toMatchObject({ rows: [{ allowed: reported, cost: reported }] })
  }
}

/** In the order of docs/operating.md; back in reverse. */
const order = ['metering', 'metering-2', 'alerting', 'console', 'ingress', 'ingress-2']

it.for([
  ['this version', order],
  ['the release before it', order.toReversed()],
] as const)(
  'to %s, one process after the other under load: nothing is lost, nothing comes twice, no answer is 5xx',
  async ([to, names]) => {
    const root = to === 'this version' ? projectRoot : release.root
    const { row, load } = await playScenario(stack, {
      fault: `each process replaced under load by ${to === 'this version' ? 'the next version' : 'the one before'}`,
      perSecond: 500,
      async strike(scene) {
        for (const name of names) {
          await stack.moveTo(name, root)
          await scene.load.forMs(3_000)
        }
      },
    })
    expect(row).toEqual(exactly(row))
    expect(load.progress).toMatchObject({ undecided: {}, unrecorded: 0 })
    const { due, raised, delivered } = await countAlerts(stack, load.quotaSubjects)
    expect({ raised, delivered }).toEqual({ raised: due, delivered: due })
    if (to === 'this version') {
      await expectReadHere()
      await leaseHere()
    } else {
      expect(await (await open(`/v1/invoices/${invoice.id}`)).text()).toBe(invoice.document)
      await expectLeasedThere()
    }
  },
)
