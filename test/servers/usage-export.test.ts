import { randomInt, randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { topics } from '@weir/contracts/topics.ts'
import type { RatedUsage } from '@weir/core/prices/rated-usage.ts'
import { afterAll, expect, test } from 'vitest'
import { startConsoleStack } from '../support/console-stack.ts'
import { until } from '../support/until.ts'
import { runWeir } from '../support/weir-up.ts'

const hourMs = 3_600_000
/** The first of twenty whole hours. */
const firstMs = Math.floor(Date.now() / hourMs) * hourMs - 20 * hourMs
const subjects = ['acme', 'bolt', 'gone']
const tiers = [{ unit_amount: '1' }]
const lines = [
  { name: 'search', measure: 'units', routes: ['POST /search'], tiers },
  { name: 'other', measure: 'decisions', tiers },
]
const policy = {
  version: 1,
  routes: [{ match: 'POST /search' }],
  prices: { api: { currency: 'EUR', lines } },
  plans: { paid: { limits: [], prices: 'api' }, free: { limits: [] } },
  subjects: { ...Object.fromEntries(subjects.map((id) => [id, { plan: 'paid' }])), nobody: { plan: 'free' } },
}

const dir = mkdtempSync(join(tmpdir(), 'weir-test-export-'))
const state = join(dir, 'state.json')
const { tables, desk: admin, close } = await startConsoleStack({ policy })
afterAll(async () => {
  await close()
  rmSync(dir, { recursive: true })
})

const topicId = randomUUID()
const next = [0, 0, 0]

/** Inserts as many decisions and corrections as metering would: anywhere in the hours, behind all others in offset. */
async function use(count: number, hours: readonly [number, number]): Promise<void> {
  const values = Array.from({ length: count }, (_, at) => {
    const partition = randomInt(3)
    const offset = next[partition] ?? 0
    next[partition] = offset + 1
    const isCorrection = at % 5 === 0
    const ms = firstMs + randomInt(hours[0] * hourMs, hours[1] * hourMs)
    return {
      id: randomUUID(),
      ts: new Date(ms).toISOString().slice(0, 23).replace('T', ' '),
      subject: [...subjects, 'nobody'][randomInt(4)],
      outcome: at % 7 === 0 ? 'deny' : 'allow',
      route: ['POST /search', ...Array.from({ length: 40 }, (_, one) => `GET /${one}`)][randomInt(41)],
      ...(isCorrection
        ? { cost: 0, count: 0, corrects: randomUUID(), adjustment: randomInt(9) - 6 }
        : { cost: 1 + randomInt(5), count: 1 }),
      topic_id: topicId,
      partition,
      offset,
    }
  })
  await tables.client.insert({ table: 'weir.decisions', values, format: 'JSONEachRow' })
}

/** From now on all until this hour is complete. */
const complete = (hour: number) =>
  tables.client.insert({
    table: 'weir.marks',
    values: [
      {
        topic: topics.decisions,
        journal: topicId,
        partition: 0,
        seq: hour,
        end: false,
        mark: new Date(firstMs + hour * hourMs + 1_000).toISOString().slice(0, 23).replace('T', ' '),
      },
    ],
    format: 'JSONEachRow',
  })

async function run(...args: readonly string[]) {
  const { code, stdout, stderr } = await runWeir(['usage', 'export', ...args], admin.environment)
  return { code, stdout, stderr }
}
const rowsOf = (text: string): readonly RatedUsage[] =>
  text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))

const keyOf = ({ subject, hour, line }: Pick<RatedUsage, 'subject' | 'hour' | 'line'>) => `${subject} ${hour} ${line}`
function sumsOf(rows: readonly RatedUsage[]) {
  const sums = new Map<string, bigint>()
  for (const row of rows) sums.set(keyOf(row), (sums.get(keyOf(row)) ?? 0n) + BigInt(row.quantity))
  return Object.fromEntries([...sums].filter(([, sum]) => sum !== 0n).sort())
}

/** What the rollup has of the hours before this one. */
async function counted(hour: number) {
  const rows = await tables.rows<{ subject: string; ms: string; line: string; quantity: string }>(
    `SELECT subject, toString(toUnixTimestamp(toStartOfHour(ts))) AS ms, if(route = 'POST /search', 'search', 'other') AS line,
       toString(if(line = 'search', sum(cost), toInt64(sum(count)))) AS quantity
     FROM weir.usage_15m
     WHERE outcome = 'allow' AND subject != 'nobody' AND ts < fromUnixTimestamp64Milli(${firstMs + hour * hourMs})
     GROUP BY subject, ms, line HAVING quantity != '0'`,
  )
  const entries = rows.map(({ subject, ms, line, quantity }): [string, bigint] => [
    keyOf({ subject, hour: new Date(Number(ms) * 1_000).toISOString(), line }),
    BigInt(quantity),
  ])
  return Object.fromEntries(entries.sort())
}

test('All exports of a state have what is counted once, also what comes late, after a run that ended early, and of a deleted subject', async () => {
  const from = ['--from', new Date(firstMs).toISOString()]
  const all: RatedUsage[] = []
  // Subjects, hours and routes of two pages.
  await use(9_000, [0, 13])
  await complete(12)
  const first = await run('--json', '--state', state, ...from)
  expect([first.code, first.stderr]).toEqual([
    0,
    expect.stringMatching(/rows until .*\n.*decisions match no price line/s),
  ])
  all.push(...rowsOf(first.stdout))
  expect(sumsOf(all)).toEqual(await counted(12))
  expect(all.every(({ correction }) => !correction)).toBe(true)

  // Late records of hours that were exported, and the rest of the hour that was not whole.
  await use(500, [0, 14])
  await complete(14)
  expect((await admin.ask('DELETE /v1/subjects/gone')).status).toBe(204)
  const isDeleted = async () =>
    (await tables.rows("SELECT 1 FROM weir.policy_history WHERE kind = 'subject' AND name = 'gone' AND body = ''"))
      .length > 0
  await until(isDeleted, 20_000)
  const customers = join(dir, 'customers.json')
  writeFileSync(customers, '{"acme":"cus_1"}')
  const early = await run('--to', 'stripe', '--state', state, '--customers', customers)
  expect([early.code, early.stderr]).toEqual([2, expect.stringContaining('names no customer for "bolt"')])
  // What comes between the two is in the next export.
  await use(500, [0, 16])
  await complete(15)
  const again = await run('--json', '--state', state, '--again')
  const { stdout: once } = await run('--json', '--state', state, '--again')
  expect([again.code, again.stdout]).toEqual([0, once])
  all.push(...rowsOf(again.stdout))
  expect(rowsOf(again.stdout).some(({ subject, correction }) => subject === 'gone' && correction)).toBe(true)

  const third = await run('--json', '--state', state)
  all.push(...rowsOf(third.stdout))
  expect(sumsOf(all)).toEqual(await counted(15))
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
  const none = await run('--json', '--state', state)
  expect([none.code, none.stdout]).toEqual([0, ''])
}, 120_000)

test('It prints the rows as CSV, as Stripe’s meter events and as Lago’s events', async () => {
  const from = ['--from', new Date(firstMs).toISOString()]
  const rows = rowsOf((await run('--json', ...from)).stdout)
  expect(rows.length).toBeGreaterThan(30)
  const csv = (await run(...from)).stdout.trim().split('\r\n')
  expect(csv[0]).toBe('id,subject,hour,correction,prices,line,unit,quantity')
  expect(csv.slice(1).map((line) => line.split(',')[0])).toEqual(rows.map(({ id }) => id))
  const stripe = (await run('--to', 'stripe', ...from)).stdout.trim().split('\r\n')
  expect(stripe.slice(1).map((line) => line.split(',')[4])).toEqual(rows.map(({ quantity }) => quantity))
  const lago = (await run('--to', 'lago', ...from)).stdout.trim().split('\n')
  expect(lago.flatMap((body) => JSON.parse(body).events).map((one) => one.transaction_id)).toEqual(
    rows.map(({ id }) => id),
  )
})

test('It says what is missing or wrong before it asks, and changes no state', async () => {
  const before = readFileSync(state, 'utf8')
  for (const [args, words] of [
    [[], 'Name the first hour with --from'],
    [['--again'], '--state FILE'],
    [['--state', join(dir, 'none'), '--again'], 'nothing to repeat'],
    [['--state', state, '--from', 'now-1d'], 'Leave it out'],
    [['--state', join(dir, 'customers.json')], 'must be the state of an export'],
  ] as const) {
    const { code, stderr } = await run(...args)
    expect([code, stderr]).toEqual([2, expect.stringContaining(words)])
  }
  expect(readFileSync(state, 'utf8')).toBe(before)
})
