import { formatTs } from '@weir/contracts/timestamp.ts'
import { monthOf, periodBoundaries } from '@weir/core/calendar/calendar.ts'
import { Redis } from 'ioredis'
import { afterAll, expect, test } from 'vitest'
import { openAlertingStack } from '../../support/alerting/open-alerting.ts'
import { forFile } from '../../support/opened.ts'
import { until } from '../../support/until.ts'

const stack = await forFile(
  openAlertingStack(['ops'], {
    prices: { api: { currency: 'EUR', lines: [{ name: 'all', measure: 'units', tiers: [{ unit_amount: '0.01' }] }] } },
    plans: { paid: { limits: [], prices: 'api', budget: { amount: '20.00', thresholds: ['50%', '80%', '100%'] } } },
    subjects: {
      acme: { plan: 'paid', timeZone: 'Asia/Kathmandu', anchor: 15 },
      bolt: { plan: 'paid', budget: { amount: '1000.00' } },
      cars: { plan: 'paid' },
      ...Object.fromEntries(Array.from({ length: 1_200 }, (_, at) => [`subject-${at}`, { plan: 'paid' }])),
    },
  }),
)
const redis = new Redis(stack.redis.address)
afterAll(() => void redis.disconnect())

/** The subjects' months: those that run, and the first instants after them. */
const own = { acme: ['Asia/Kathmandu', 15] as const, other: ['UTC', 1] as const }
function monthOfNow(subject: string) {
  const [zone, anchor] = subject === 'acme' ? own.acme : own.other
  const [startMs, endMs] = periodBoundaries('month', zone, anchor, Date.now())
  return { startMs, endMs, name: monthOf(zone, startMs) }
}
const quarterMs = 900_000

const insert = (subject: string, atMs: number, cost: number) =>
  stack.tables.client.insert({
    table: 'weir.usage_15m',
    values: [
      {
        ts: formatTs(atMs).slice(0, 19),
        subject,
        key_id: '',
        plan: 'paid',
        route: '*',
        method: 'GET',
        outcome: 'allow',
        denied_by: '',
        count: 1,
        cost,
      },
    ],
    format: 'JSONEachRow',
  })

/** Units that a subject used in the first quarter of an hour of its month; around its month it used far more. */
async function use(subject: string, units: number) {
  const { startMs, endMs } = monthOfNow(subject)
  await insert(subject, startMs, units)
  for (const atMs of [startMs - quarterMs, endMs]) await insert(subject, atMs, 1_000_000)
}

/** Starts alerting, which looks at once: the lock of the process before would end by itself, in a minute. */
async function start(environment?: Readonly<Record<string, string>>) {
  await redis.del('weir:1:watches:budgets')
  return await stack.launch(environment)
}

interface Row {
  readonly id: string
  readonly subject: string
  readonly data: string
}
const allRows = async () =>
  (await stack.rows<Row>('SELECT id, subject, data FROM weir.alerts FINAL ORDER BY percent, subject')).map(
    ({ id, subject, data }) => ({ id, subject, ...JSON.parse(data) }),
  )
/** Those of the month before are of use that is there to be left out: in its first hours they may come. */
const ofNow = ({ subject, period }: { subject: string; period: string }) => period === monthOfNow(subject).name
const rows = async () => (await allRows()).filter(ofNow)
const percents = async () => (await rows()).map(({ subject, percent }) => `${subject} ${percent}`)
test('each threshold of a budget is an alert once a month, over kills, an empty Redis and a ClickHouse that is away', async () => {
  await use('acme', 999)
  await use('bolt', 1_000)
  await use('cars', 1_700)
  await use('subject-1199', 1_000)
  const first = await start()
  await until(async () => (await percents()).length === 2)
  // The last of three pages was looked at, so that of acme was, too.
  expect(await percents()).toEqual(['subject-1199 50', 'cars 80'])
  await first.kill('SIGKILL')

  // Of several thresholds the highest is the alert. The process dies between its publishing and its claim's end.
  await use('acme', 701)
  const victim = await start({ WEIR_CRASH_AT: 'alerting.publish' })
  await victim.ended
  const heir = await start()
  await until(async () => (await percents()).length === 3)
  expect(await percents()).toEqual(['subject-1199 50', 'acme 80', 'cars 80'])
  expect((await rows())[1]).toMatchObject({
    prices: 'api',
    currency: 'EUR',
    budget: '20.00',
    amount: '17.00',
    period: monthOfNow('acme').name,
    period_start: new Date(monthOfNow('acme').startMs).toISOString(),
  })
  await heir.kill('SIGKILL')

  // Without claims the table says what was raised. What is new is found behind it.
  await redis.flushall()
  await use('acme', 300)
  await stack.tables.client.command({ query: 'RENAME TABLE weir.usage_15m TO weir.away' })
  const last = await start()
  await until(async () => (await last.ready()).text.includes('budgets'))
  await stack.tables.client.command({ query: 'RENAME TABLE weir.away TO weir.usage_15m' })
  await until(async () => (await percents()).length === 4)
  expect(await percents()).toEqual(['subject-1199 50', 'acme 80', 'cars 80', 'acme 100'])
  const received = () => stack.received.map(({ headers, body }) => ({ id: headers['webhook-id'], ...JSON.parse(body) }))
  await until(
    () =>
      new Set(
        received()
          .filter(({ data }) => ofNow(data))
          .map(({ id }) => id),
      ).size === 4,
  )
  expect(received().find(({ data }) => data.subject === 'subject-1199')).toMatchObject({
    type: 'weir.budget.reached',
    data: { percent: 50, amount: '10.00' },
  })
})
