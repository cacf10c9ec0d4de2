import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { topics } from '@weir/contracts/topics.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { type RunningServer, startServer } from '../../support/servers/start-server.ts'
import { startTables, type Tables } from '../../support/servers/tables.ts'
import { type RunningConsole, startConsole } from '../../support/start-console.ts'
import { runWeir } from '../../support/weir-up.ts'

let kafka: RunningServer
let tables: Tables
let admin: RunningConsole
beforeAll(async () => {
  kafka = await startServer(kafkaServer)
  await ensureTopics(kafkaOptions(kafka.address), await readTopics())
  tables = await startTables()
  const servers = { WEIR_KAFKA_BROKERS: kafka.address, WEIR_CLICKHOUSE_URL: tables.url }
  admin = await startConsole({ ...servers, WEIR_REDIS_URL: inject('redisUrl') })
}, 180_000)
afterAll(async () => {
  await admin?.close()
  await tables?.close()
  await kafka?.close()
})

const now = new Date()
const monthsAgo = (months: number) =>
  new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months, 1)).toISOString().slice(0, 7)
/** In UTC. */
const [thisMonth, month, monthBefore] = [monthsAgo(0), monthsAgo(1), monthsAgo(2)]
const policy = {
  version: 1,
  prices: {
    api: { currency: 'EUR', flat: '5.00', lines: [{ name: 'all', measure: 'units', tiers: [{ unit_amount: '2' }] }] },
  },
  plans: { paid: { limits: [], prices: 'api' }, free: { limits: [] } },
  subjects: {
    acme: { plan: 'paid' },
    bolt: { plan: 'free', prices: 'api' },
    guest: { plan: 'free' },
    late: { plan: 'paid', timeZone: 'Pacific/Niue', anchor: 31 },
  },
}
/** The policy is younger than the months. */
const accepted = ['--accept-gaps', 'a policy of today']
const weir = (...args: string[]) => runWeir(['invoices', ...args], admin.environment)
const use = (subject: string, at: string, cost: string) =>
  tables.client.command({
    query: `INSERT INTO weir.decisions (id, ts, subject, outcome, cost, count) SELECT '${randomUUID()}', toDateTime64('${at}', 3), '${subject}', 'allow', ${cost}, 1`,
  })

test('a month is closed, listed, shown and exported from the command line', async () => {
  expect((await admin.ask('PUT /v1/policy', JSON.stringify(policy))).status).toBe(200)
  for (const [subject, cost] of Object.entries({ acme: '7', bolt: '11', guest: '13' })) {
    await use(subject, `${month}-10 00:00:00`, cost)
  }
  await tables.client.command({
    query: `INSERT INTO weir.marks (topic, journal, partition, mark, seq) SELECT '${topics.decisions}', '${randomUUID()}', 0, now64(3), 1`,
  })
  await use('bolt', `${monthBefore}-10 00:00:00`, '3')
  expect((await weir('close', monthBefore, '--subject', 'bolt', '--grace', '1s', ...accepted)).code).toBe(0)
  await use('bolt', `${monthBefore}-11 00:00:00`, '4')
  const closed = await weir('close', month, '--subject', 'acme', 'bolt', '--grace', '1s', ...accepted)
  expect([closed.code, closed.stdout]).toEqual([0, expect.stringMatching(/^SUBJECT .*\nacme .*\nbolt .*\n$/)])
  const all = await weir('close', month, '--grace', '31d', '--json')
  const { items, problems } = JSON.parse(all.stdout)
  expect([all.code, items.map(({ subject }: { subject: string }) => subject)]).toEqual([1, ['acme', 'bolt']])
  expect(new Set(problems.map(({ path }: { path: string }) => path))).toEqual(new Set(['late']))

  const listed = JSON.parse((await weir('list', '--period', month, '--json')).stdout)
  expect(listed.map(({ subject }: { subject: string }) => subject)).toEqual(['acme', 'bolt'])
  const [{ id }] = listed
  expect((await weir('show', id)).stdout).toMatch(
    /^acme {2}.*\n.*\nall +7 +units +14\.00\nflat +5\.00\ntotal +19\.00\nto pay {2}19\.00 EUR\n$/,
  )
  const url = `${admin.environment.WEIR_CONSOLE_URL}/v1/invoices/${id}`
  const document = await (
    await fetch(url, { headers: { authorization: `Bearer ${admin.environment.WEIR_ADMIN_TOKEN}` } })
  ).text()
  expect((await weir('show', id, '--json')).stdout).toBe(`${document}\n`)
  expect((await weir('show', id, '--csv')).stdout.split('\r\n').at(-1)).toContain(',total,')
  expect((await weir('preview', 'acme')).stdout).toMatch(
    /^acme {2}draft {2}.*\nLINE .*\nall +0 .*\nflat +5\.00\ntotal +5\.00\n/,
  )

  const customers = join(kafka.dir, 'customers.json')
  await writeFile(customers, '{"acme":"cus_1"}')
  const unnamed = await weir('export', '--period', month, '--to', 'stripe', '--customers', customers)
  expect([unnamed.code, unnamed.stdout, unnamed.stderr]).toEqual([2, '', expect.stringContaining('"bolt"')])
  await writeFile(customers, '{"acme":"cus_1","bolt":"cus_2"}')
  const stripe = await weir('export', '--period', month, '--to', 'stripe', '--customers', customers)
  expect([stripe.code, stripe.stdout]).toEqual([
    0,
    expect.stringMatching(/^identifier,.*\r\n.*,all,cus_1,7\r\n.*,all,cus_2,11\n$/),
  ])
  expect(stripe.stderr).toMatch(
    /2 events of 2 invoices\n.*not among them is the adjustment of bolt, of the month from .*: 4 units, 8\.00 EUR\n$/,
  )
  const lago = JSON.parse((await weir('export', '--period', month, '--to', 'lago')).stdout)
  expect(lago.events).toHaveLength(2)
  expect(lago.events[0]).toMatchObject({ external_subscription_id: 'acme', code: 'all', properties: { value: '7' } })
}, 120_000)

test('whole months have their price from the command line, and a draft is exact beyond 2^53', async () => {
  const span = ['--from', `${month}-01`, '--to', `${thisMonth}-01`]
  const usage = (...args: string[]) => runWeir(['usage', '--price', ...args], admin.environment)
  const priced = await usage(...span, '--order', '-cost')
  expect([priced.code, priced.stdout]).toEqual([
    0,
    expect.stringMatching(
      /^SUBJECT +UNITS +DECISIONS +REFUSED +AMOUNT +CURRENCY\nguest .* - +-\nbolt +11 .* 27\.00 +EUR\nacme +7 .* 19\.00 +EUR\ntotal +31 /,
    ),
  ])
  const part = await usage('--from', `${month}-02`, '--to', `${thisMonth}-01`, '--subject', 'acme')
  expect([part.code, part.stdout, part.stderr]).toEqual([2, '', expect.stringContaining('whole months')])

  await use('bolt', `${thisMonth}-01 00:00:00`, '9007199254740993')
  expect((await weir('preview', 'bolt')).stdout).toMatch(/\nall +9,007,199,254,740,993 +units +18014398509481986\.00\n/)
})

test('what is mistyped is refused before anything is asked, and what is not there with exit code 2', async () => {
  const mistyped = [weir('close', '2026-13'), weir('export', '--period', month, '--to', 'nowhere')]
  for (const { code, stderr } of await Promise.all(mistyped))
    expect([code, stderr]).toEqual([2, expect.stringMatching(/invalid/)])
  expect((await weir('show', 'nothing')).code).toBe(2)
})
