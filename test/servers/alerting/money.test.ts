import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { expect, test } from 'vitest'
import { openAlertingStack } from '../../support/alerting/open-alerting.ts'
import { forFile } from '../../support/opened.ts'
import { startServiceProcess } from '../../support/service-process.ts'
import { startIngress } from '../../support/start-ingress.ts'
import { until } from '../../support/until.ts'

const prices = [{ from: '2026-01-01T00:00:00Z', prices: { requests: '0.01' } }]
const budget = { algorithm: 'fixed_window', unit: 'eur', period: 'month', mode: 'shadow', thresholds: ['50%', '100%'] }
const stack = await forFile(
  openAlertingStack(['ops'], {
    rateCards: { eur: { currency: 'EUR', unknown: 'count', prices } },
    limits: { company: { ...budget, size: '0.04' }, member: { ...budget, size: '10.00' } },
    // As an earlier release stored it.
    prices: { api: { currency: 'EUR', lines: [{ name: 'all', measure: 'units', tiers: [{ unit_amount: '0.01' }] }] } },
    plans: {
      company: { limits: ['company'], prices: 'api', budget: { amount: '20.00', thresholds: ['80%'] } },
      member: { limits: ['member'] },
    },
    subjects: {
      acme: { plan: 'company', timeZone: 'Asia/Kathmandu', anchor: 15 },
      ann: { plan: 'member', parent: 'acme' },
      ben: { plan: 'member', parent: 'acme', limits: { member: { size: '0.03' } } },
    },
    tokens: { gate: { sha256: sha256('gate'), scopes: ['check'] } },
  }),
)
const ingress = await forFile(
  startIngress({
    WEIR_REDIS_URL: stack.redis.address,
    WEIR_KAFKA_BROKERS: stack.kafka.address,
    WEIR_POLICY_FILE: '/nowhere/weir.yaml',
  }),
)
await stack.start()

async function ask(subject: string) {
  const headers = { authorization: 'Bearer gate', 'content-type': 'application/json' }
  const body = JSON.stringify({ subject, route: 'GET /a' })
  expect((await fetch(`${ingress.api}/v1/check`, { method: 'POST', headers, body })).status).toBe(200)
}

const told = () =>
  stack.received.map(({ body }) => {
    const { limit, percent, subject } = JSON.parse(body).data
    return `${subject} ${limit} ${percent}`
  })

test('A limit of money in shadow refuses nothing, and alerts at each level within seconds', async () => {
  await ask('ann')
  await ask('ben')
  await until(() => told().length === 1, 5_000)
  expect(told()).toEqual(['acme company 50'])
  await ask('ben')
  await until(() => told().length === 2, 5_000)
  await ask('ann')
  await ask('ann')
  await until(() => told().length === 3, 5_000)
  expect(told()).toEqual(['acme company 50', 'ben member 50', 'acme company 100'])
})

test('A console warns once of a stored budget', async () => {
  const [port] = await freePorts(1)
  const warned = await startServiceProcess('console', {
    WEIR_CONSOLE_PORT: String(port),
    WEIR_REDIS_URL: stack.redis.address,
    WEIR_KAFKA_BROKERS: stack.kafka.address,
    WEIR_CLICKHOUSE_URL: stack.tables.url,
    WEIR_ADMIN_TOKEN_SHA256: sha256('admin'),
  })
  await until(() => warned.said().includes('budgets do nothing since 0.11'))
  await warned.kill('SIGKILL')
})
