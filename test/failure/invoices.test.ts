import { randomUUID } from 'node:crypto'
import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { encodeMark } from '@weir/contracts/journal.v1.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { Invoice } from '@weir/core/prices/invoice.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { endSessions, type MeteringStack, openMeteringStack } from '../servers/metering/open-metering.ts'
import { type RunningServer, startServer } from '../support/servers/start-server.ts'
import { type RunningConsole, startConsole } from '../support/start-console.ts'

const subjects = Array.from({ length: 8 }, (_, at) => `customer-${at}`)
const line = { included: 3, tiers: [{ up_to: 10, unit_amount: '0.333' }, { unit_amount: '0.1' }] }
const policy = JSON.stringify({
  version: 1,
  limits: { m: { algorithm: 'fixed_window', size: 1, window: '1m' } },
  prices: { api: { currency: 'EUR', flat: '5.00', lines: [{ name: 'all', measure: 'units', ...line }] } },
  plans: { paid: { limits: ['m'], prices: 'api' } },
  subjects: Object.fromEntries(subjects.map((id) => [id, { plan: 'paid', timeZone: 'Asia/Kathmandu' }])),
})
/** The price list above, in thousandths of a euro and by itself. */
function priceOf(units: bigint): string {
  const billable = units > 3n ? units - 3n : 0n
  const thousandths = 5_000n + (billable > 10n ? 3_330n + (billable - 10n) * 100n : billable * 333n)
  const cents = (thousandths + 5n) / 10n
  return `${cents / 100n}.${String(cents % 100n).padStart(2, '0')}`
}
const cents = (amount: string) => BigInt(amount.replace('.', ''))

/** Kathmandu is 5 h 45 min ahead, all year. */
const aheadMs = 20_700_000
const local = new Date(Date.now() + aheadMs)
/** The month that began so many months before the present one: its name and its first instant, in Kathmandu. */
function monthBefore(months: number) {
  const start = Date.UTC(local.getUTCFullYear(), local.getUTCMonth() - months, 1)
  return { name: new Date(start).toISOString().slice(0, 7), fromMs: start - aheadMs }
}
const [first, second, running] = [monthBefore(2), monthBefore(1), monthBefore(0)]

let stack: MeteringStack
let redis: RunningServer
const desks: RunningConsole[] = []
beforeAll(async () => {
  ;[stack, redis] = await Promise.all([openMeteringStack(), startServer(redisServer)])
  const servers = { WEIR_KAFKA_BROKERS: stack.kafka.address, WEIR_REDIS_URL: redis.address }
  for (const _ of [1, 2]) desks.push(await startConsole({ ...servers, WEIR_CLICKHOUSE_URL: stack.clickhouse.address }))
  expect((await desks[0]?.ask('PUT /v1/policy', policy))?.status).toBe(200)
})
afterAll(async () => {
  await Promise.all(desks.map((desk) => desk.close()))
  await Promise.all([stack?.close(), redis?.close()])
})

const journal = randomUUID()
/** Everything that was sent, and the units of each subject by its month: what all invoices together must come to. */
const sent: { readonly partition: number; readonly value: string }[] = []
const units = new Map<string, bigint>()
const seqs = [0, 0]

async function send(subject: string, tsMs: number, cost: number, corrects?: string): Promise<string> {
  const partition = sent.length % 2
  const id = uuidv7(tsMs)
  const correction = corrects === undefined ? undefined : { corrects, adjustment: cost }
  const open = encodeDecisionOpen({
    ...{ id, tsMs, subject, keyId: 'k', plan: 'paid', route: 'GET /a', method: 'GET', outcome: 'allow', reason: 'ok' },
    ...{ cost: correction === undefined ? cost : 0, count: correction === undefined ? 1 : 0, correction },
    ...{ mode: 'enforce', charged: 'yes', deniedBy: '', limits: [] },
  })
  const seq = seqs[partition] ?? 0
  seqs[partition] = seq + 1
  const value = `${open},"journal":"${journal}","seq":${seq}}`
  sent.push({ partition, value })
  const month = tsMs < first.fromMs ? 'before' : tsMs < second.fromMs ? first.name : second.name
  units.set(`${subject} ${month}`, (units.get(`${subject} ${month}`) ?? 0n) + BigInt(cost))
  await stack.send([value], partition)
  return id
}
const mark = () =>
  Promise.all([0, 1].map((at) => stack.send([encodeMark(Date.now(), journal, seqs[at] ?? 0, false)], at)))

/** All that was sent is counted, once. */
async function untilCounted(): Promise<void> {
  const counted = async () => Number((await stack.rows<{ n: string }>('SELECT count() AS n FROM weir.decisions'))[0]?.n)
  await waitUntil(async () => (await counted().catch(() => 0)) === sent.length, { deadlineMs: 90_000, everyMs: 200 })
  expect(await counted()).toBe(sent.length)
}

/** What consoles answered, by the invoice's id: one text each, if closing twice is closing once. */
const answered = new Map<string, Set<string>>()
let interrupted = 0

async function close(desk: RunningConsole, period: string, of: readonly string[]): Promise<void> {
  const closed = await waitUntil(
    async () => {
      // The policy is younger than the months.
      const body = { period, subjects: of, grace: '1ms', accept_gaps: 'a policy of today' }
      const answer = await desk.ask<{ items?: { id: string }[] }>('POST /v1/invoices', body).catch(() => undefined)
      if (answer?.status !== 200) interrupted += 1
      for (const item of answer?.body.items ?? []) {
        answered.set(item.id, (answered.get(item.id) ?? new Set()).add(JSON.stringify(item)))
      }
      return answer?.status === 200
    },
    { deadlineMs: 90_000 },
  )
  expect([period, closed]).toEqual([period, true])
}

/** Closes in two consoles at the same time, in two orders. */
const closeTwice = (period: string) =>
  Promise.all(desks.map((desk, at) => close(desk, period, at === 0 ? subjects : subjects.toReversed())))

/** Once so many invoices are stored. */
async function untilStored(count: number): Promise<void> {
  const stored = async () => Number((await stack.rows<{ n: string }>('SELECT count() AS n FROM weir.invoices'))[0]?.n)
  const there = await waitUntil(async () => (await stored().catch(() => 0)) >= count, {
    deadlineMs: 90_000,
    everyMs: 1,
  })
  expect(there).toBe(true)
}

/** The document as it is answered, to the byte, and what it says. */
async function readAll(period: string) {
  const [desk = expect.fail()] = desks
  const all = new Map<string, { readonly text: string; readonly invoice: Invoice }>()
  for (const subject of subjects) {
    const { body } = await desk.ask<{ items: { id: string; period: string }[] }>(`GET /v1/invoices?subject=${subject}`)
    const items = body.items.filter((one) => one.period === period)
    expect([subject, items.length]).toEqual([subject, 1])
    const url = `${desk.environment.WEIR_CONSOLE_URL}/v1/invoices/${items[0]?.id}`
    const headers = { authorization: `Bearer ${desk.environment.WEIR_ADMIN_TOKEN}` }
    const text = await (await fetch(url, { headers })).text()
    all.set(subject, { text, invoice: JSON.parse(text) })
  }
  return all
}

async function killAround(): Promise<void> {
  const [desk = expect.fail()] = desks
  await untilStored(1)
  await stack.clickhouse.kill('SIGKILL')
  await stack.clickhouse.restart()
  await untilStored(3)
  await desk.kill()
  await desk.restart()
  await untilStored(5)
  await stack.clickhouse.kill('SIGKILL')
  await stack.clickhouse.restart()
}

test('invoices are closed once and stay equal to the byte over kills, replays and late records, which the next ones adjust', async () => {
  const ids = new Map<string, string>()
  for (const [at, subject] of subjects.entries()) {
    ids.set(subject, await send(subject, first.fromMs + 1, 6 + at))
    for (const tsMs of [second.fromMs - 1, second.fromMs, running.fromMs - 1]) await send(subject, tsMs, 1)
  }
  await mark()
  let metering = await stack.start()
  await untilCounted()

  // Closings of another moment would count other records: some come late all the while.
  const closing = closeTwice(first.name)
  let isClosed = false
  const ended = closing.finally(() => {
    isClosed = true
  })
  const late = (async () => {
    while (!isClosed) for (const subject of subjects) await send(subject, second.fromMs - 3_600_000, 1)
  })()
  const restarted = (async () => {
    await untilStored(2)
    await metering.kill('SIGKILL')
    await endSessions(stack.options)
    metering = await stack.start()
  })()
  await Promise.all([ended, late, restarted, killAround()])
  expect(interrupted).toBeGreaterThan(0)
  await untilCounted()
  const ofFirst = await readAll(first.name)

  for (const { partition, value } of sent.slice(0, 20)) await stack.send([value], partition)
  for (const subject of subjects) await send(subject, first.fromMs + 1, -2, ids.get(subject))
  await mark()
  await untilCounted()
  await closeTwice(first.name)
  expect(await readAll(first.name)).toEqual(ofFirst)

  await closeTwice(second.name)
  const ofSecond = await readAll(second.name)
  for (const subject of subjects) {
    const [used, usedNext] = [first, second].map(({ name }) => units.get(`${subject} ${name}`) ?? 0n)
    const [one, next] = [ofFirst, ofSecond].map((all) => all.get(subject)?.invoice ?? expect.fail())
    expect(next?.adjustments).toHaveLength(1)
    const [adjustment] = next?.adjustments ?? []
    expect(adjustment?.for_period).toBe(one?.period.from)
    expect([next?.units, next?.quote.total]).toEqual([String(usedNext), priceOf(usedNext ?? 0n)])
    expect(BigInt(one?.units ?? '') + BigInt(adjustment?.units ?? '')).toBe(used)
    expect(cents(one?.quote.total ?? '') + cents(adjustment?.amount ?? '')).toBe(cents(priceOf(used ?? 0n)))
  }
  expect([...answered.values()].map(({ size }) => size)).toEqual(Array(subjects.length * 2).fill(1))
}, 300_000)
