import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, onTestFinished, test } from 'vitest'
import { hear } from '../../support/hear.ts'
import { forFile } from '../../support/opened.ts'
import { weirUp } from '../../support/weir-up.ts'

const [size, windowMs] = [3_000, 4_000]
const subjects = ['steady', 'killed', 'stopped', 'blocked']
const policy = {
  version: 1,
  plans: { app: { limits: ['window', 'day'], clientLease: '1s' } },
  limits: {
    window: { algorithm: 'fixed_window', size, window: `${windowMs}ms` },
    day: { algorithm: 'fixed_window', size: 100_000_000, period: 'day' },
  },
  subjects: Object.fromEntries(subjects.map((name) => [name, { plan: 'app' }])),
}
const file = join(tmpdir(), `weir-leases-${process.pid}.yaml`)
await writeFile(file, JSON.stringify(policy))
const weir = await forFile(weirUp(['--policy', file]))
const clickhouse = await forFile(connectClickhouse(weir.line.clickhouse, 'test'))

/** What an application last said of itself. */
interface Said {
  readonly isEnd: boolean
  /** By the number of the window. */
  readonly admitted: Readonly<Record<string, number>>
  readonly local: number
  readonly single: number
  readonly refused: number
  readonly failed: number
  readonly leases: Readonly<Record<'leased' | 'decided' | 'refused' | 'returned' | 'lost', number>>
}

const program = join(import.meta.dirname, '../../support/client/leasing-app.ts')

function startApp(subject: string, perSecond: number, seconds: number) {
  const child = spawnBound([process.execPath, program, String(perSecond), String(seconds)], {
    stdio: 'pipe',
    env: {
      PATH: process.env.PATH,
      WEIR_URL: weir.line.api,
      WEIR_KEY: weir.line.adminToken,
      SUBJECT: subject,
      WINDOW_MS: String(windowMs),
    },
  })
  const seen = hear(child)
  onTestFinished(() => void child.kill('SIGKILL'))
  return {
    child,
    ended: seen.ended,
    /** The last line that is whole. */
    said(): Said {
      const lines = seen.stdout.slice(0, seen.stdout.lastIndexOf('\n')).split('\n')
      const nothing = { isEnd: false, admitted: {}, local: 0, single: 0, refused: 0, failed: 0 }
      return { ...nothing, leases: undefined, ...JSON.parse(lines.at(-1) || '{}') }
    },
  }
}
type App = ReturnType<typeof startApp>

const totalOf = ({ admitted }: Said) => Object.values(admitted).reduce((sum, count) => sum + count, 0)

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

const untilEnded = async (apps: readonly App[]) => {
  await Promise.all(apps.map(({ ended }) => ended))
  const said = apps.map((app) => app.said())
  expect(said.map(({ isEnd, failed }) => [isEnd, failed])).toEqual(apps.map(() => [true, 0]))
  return said
}

test('Two applications with leases and one without are admitted what the limit has in each window, and counted exactly', async () => {
  const apps = [startApp('steady', 600, 14), startApp('steady', 600, 14)]
  const plain = startApp('steady', 20, 14)
  const said = await untilEnded([...apps, plain])
  const windows = new Map<string, number>()
  for (const { admitted } of said) {
    for (const [end, count] of Object.entries(admitted)) windows.set(end, (windows.get(end) ?? 0) + count)
  }
  const counts = [...windows].toSorted(([a], [b]) => Number(a) - Number(b)).map(([, count]) => count)
  process.stdout.write(`  ${JSON.stringify({ windows: counts, said: said.map(({ admitted: _, ...one }) => one) })}\n`)
  expect(Math.max(...counts)).toBeLessThanOrEqual(size)
  // The first and the last are asked for a part of their time. What a lease has left at an end, nobody else gets.
  expect(Math.min(...counts.slice(1, -1))).toBeGreaterThan(size * 0.98)
  const [first] = said
  expect(first && first.local / (first.local + first.single)).toBeGreaterThan(0.6)
  const admitted = said.reduce((sum, one) => sum + totalOf(one), 0)
  const refused = said.reduce((sum, one) => sum + one.refused, 0)
  expect(await settledOf('steady')).toEqual({ admitted, units: admitted, rollup: admitted, refused })
})

test('An application that is killed with leases out is never counted too little, and too much by what it held at most', async () => {
  const rows: object[] = []
  let [reported, held] = [0, 0]
  for (let kill = 0; kill < 4; kill += 1) {
    const app = startApp('killed', 400, 60)
    const isBusy = () => totalOf(app.said()) > 700 + 150 * kill
    expect(await waitUntil(isBusy, { deadlineMs: 30_000, everyMs: 5 })).toBe(true)
    app.child.kill('SIGKILL')
    await app.ended
    const said = app.said()
    reported += totalOf(said)
    // Two leases of half a second of traffic each at most, and four times as much while it grows.
    held += 2 * 4 * 200
    rows.push({ admitted: totalOf(said), local: said.local, leases: said.leases.leased })
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
  expect(admitted).toBe(said && totalOf(said))
})

test('A block is seen by an application that leases within its lease', async () => {
  const app = startApp('blocked', 200, 60)
  expect(await waitUntil(() => app.said().local > 300, { deadlineMs: 30_000, everyMs: 5 })).toBe(true)
  const answer = await fetch(`${weir.line.console}/v1/blocks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${weir.line.adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ subject: 'blocked', for: '1h', reason: 'abuse' }),
  })
  expect([answer.status, answer.ok ? '' : await answer.text()]).toEqual([answer.status, ''])
  const sinceMs = performance.now()
  let before = -1
  const isQuiet = () => {
    const now = totalOf(app.said())
    const isSame = now === before
    before = now
    return isSame
  }
  expect(await waitUntil(isQuiet, { deadlineMs: 10_000, everyMs: 300 })).toBe(true)
  // The lease, what a policy takes to arrive, and two looks.
  expect(performance.now() - sinceMs).toBeLessThan(1_000 + 2_000 + 600)
  app.child.kill('SIGTERM')
})
