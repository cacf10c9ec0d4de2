import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, test } from 'vitest'
import { type LeasingApp, startLeasingApp, totalOf, windowsOf } from '../../support/client/leasing-apps.ts'
import { forFile } from '../../support/opened.ts'
import { weirUp } from '../../support/weir-up.ts'

const [size, windowMs] = [3_000, 4_000]
const clientLeaseMs = 1_000
const limitOf = (count: number) => ({ algorithm: 'fixed_window', size: count, window: `${windowMs}ms` })
const subjects = ['steady', 'killed', 'stopped', 'blocked', 'suspended', 'keyed']
const clientLease = `${clientLeaseMs}ms`
const policy = {
  version: 1,
  plans: { app: { limits: ['window', 'day'], clientLease }, edited: { limits: ['edited'], clientLease } },
  limits: {
    window: limitOf(size),
    edited: limitOf(100_000),
    day: { algorithm: 'fixed_window', size: 100_000_000, period: 'day' },
  },
  subjects: { ...Object.fromEntries(subjects.map((name) => [name, { plan: 'app' }])), edited: { plan: 'edited' } },
}
const file = join(tmpdir(), `weir-leases-${process.pid}.yaml`)
await writeFile(file, JSON.stringify(policy))
const weir = await forFile(weirUp(['--policy', file]))
const clickhouse = await forFile(connectClickhouse(weir.line.clickhouse, 'test'))

const startApp = (subject: string, perSecond: number, seconds: number, key = '') => {
  const { api: url, adminToken: token } = weir.line
  return startLeasingApp({ url, token, subject, windowMs, perSecond, seconds, env: { ASKED_KEY: key } })
}

async function ask(method: string, path: string, body: object | undefined): Promise<string> {
  const answer = await fetch(`${weir.line.console}${path}`, {
    method,
    headers: { authorization: `Bearer ${weir.line.adminToken}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  expect([answer.ok, text]).toEqual([true, text])
  return text
}

const newKeyOf = async (subject: string): Promise<string> =>
  JSON.parse(await ask('POST', `/v1/subjects/${subject}/keys`, { id: 'leasing' })).key

/** Of a subject, corrections included: decisions and units of what was allowed, and refusals. */
async function recordedOf(subject: string) {
  const [row] = await readRows<Record<'admitted' | 'units' | 'rollup' | 'refused', number>>(
    clickhouse,
    `SELECT toInt32(sumIf(toInt64(count) + count_adjustment, outcome = 'allow')) AS admitted,
       toInt32(sumIf(toInt64(cost * count) + adjustment, outcome = 'allow')) AS units,
       toInt32(sumIf(count, outcome = 'deny')) AS refused,
       (SELECT toInt32(sumIf(count, outcome = 'allow')) FROM weir.usage_15m WHERE subject = '${subject}') AS rollup
     FROM weir.decisions WHERE subject = '${subject}'`,
  )
  if (row === undefined) throw new Error('ClickHouse gave no row')
  return row
}

/** Until what is recorded stands for two looks, which is later than any record takes. */
async function settledOf(subject: string) {
  let found = await recordedOf(subject)
  let looks = 0
  await waitUntil(
    async () => {
      const before = JSON.stringify(found)
      found = await recordedOf(subject)
      looks += 1
      return looks > 1 && before === JSON.stringify(found)
    },
    { deadlineMs: 60_000, everyMs: 4_000 },
  )
  return found
}

const untilEnded = async (apps: readonly LeasingApp[]) => {
  await Promise.all(apps.map(({ ended }) => ended))
  const said = apps.map((app) => app.said())
  expect(said.map(({ isEnd, failed }) => [isEnd, failed])).toEqual(apps.map(() => [true, 0]))
  return said
}

test('Two applications with leases and one without are admitted what the limit has in each window, and counted exactly', async () => {
  const apps = [startApp('steady', 600, 14), startApp('steady', 600, 14)]
  const plain = startApp('steady', 20, 14)
  const said = await untilEnded([...apps, plain])
  const counts = windowsOf(said)
  process.stdout.write(`  ${JSON.stringify({ windows: counts, said: said.map(({ admitted: _, ...one }) => one) })}\n`)
  expect(Math.max(...counts)).toBeLessThanOrEqual(size)
  // The first and the last are asked for a part of their time. What a lease has left at an end, nobody else gets.
  expect(Math.min(...counts.slice(1, -1))).toBeGreaterThan(size * 0.98)
  const [first] = said
  expect(first && first.local / (first.local + first.single)).toBeGreaterThan(0.6)
  const admitted = totalOf(said)
  const refused = said.reduce((sum, one) => sum + one.refused, 0)
  expect(await settledOf('steady')).toEqual({ admitted, units: admitted, rollup: admitted, refused })
})

test('An application that is killed with leases out is never counted too little, and too much by what it held at most', async () => {
  const rows: object[] = []
  let [reported, held] = [0, 0]
  for (let kill = 0; kill < 4; kill += 1) {
    const app = startApp('killed', 400, 60)
    const isBusy = () => totalOf([app.said()]) > 700 + 150 * kill
    expect(await waitUntil(isBusy, { deadlineMs: 30_000, everyMs: 5 })).toBe(true)
    app.child.kill('SIGKILL')
    await app.ended
    const said = app.said()
    reported += totalOf([said])
    // Two leases of half a second of traffic each at most, and four times as much while it grows.
    held += 2 * 4 * 200
    rows.push({ admitted: totalOf([said]), local: said.local, leases: said.leases.leased })
  }
  const { admitted, units } = await settledOf('killed')
  process.stdout.write(`  ${JSON.stringify({ kills: rows, reported, counted: admitted, over: admitted - reported })}\n`)
  expect(units).toBe(admitted)
  expect(admitted).toBeGreaterThanOrEqual(reported)
  expect(admitted - reported).toBeLessThanOrEqual(held)
})

test('An application that is stopped gives back what it holds', async () => {
  const app = startApp('stopped', 400, 60)
  expect(await waitUntil(() => app.said().local > 500, { deadlineMs: 30_000, everyMs: 5 })).toBe(true)
  app.child.kill('SIGTERM')
  const [said] = await untilEnded([app])
  expect(said?.leases.returned).toBeGreaterThan(0)
  const { admitted } = await settledOf('stopped')
  expect(admitted).toBe(said && totalOf([said]))
})

/** What is to end the admissions of an application that leases. */
const changes = [
  ['a block', 'blocked', 'POST', '/v1/blocks', { subject: 'blocked', for: '1h', reason: 'abuse' }],
  ['a suspension', 'suspended', 'PUT', '/v1/subjects/suspended', { plan: 'app', suspended: 'unpaid' }],
  ['a revoked key', 'keyed', 'DELETE', '/v1/keys/leasing', undefined],
  ['an edited limit', 'edited', 'PUT', '/v1/limits/edited', { ...limitOf(100_000), size: 1 }],
] as const

test.each(changes)(
  '%s is seen within a lease by an application that leases',
  async (what, subject, method, path, body) => {
    const key = subject === 'keyed' ? await newKeyOf(subject) : ''
    const app = startApp(subject, 200, 60, key)
    expect(await waitUntil(() => app.said().local > 300, { deadlineMs: 30_000, everyMs: 5 })).toBe(true)
    await ask(method, path, body)
    const changedMs = Date.now()
    const isQuiet = () => Date.now() - app.said().leasedMs > 2_000
    expect(await waitUntil(isQuiet, { deadlineMs: 10_000, everyMs: 50 })).toBe(true)
    const lateMs = Math.round(app.said().leasedMs - changedMs)
    process.stdout.write(`  ${what}: the last decision with a lease ${lateMs} ms behind its answer\n`)
    // The lease, and what a policy takes to arrive.
    expect(lateMs).toBeLessThan(clientLeaseMs + 1_000)
    app.child.kill('SIGTERM')
  },
)
