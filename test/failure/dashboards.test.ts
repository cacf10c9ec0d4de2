import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { createRlsClient } from '../support/envoy-ratelimit/rls-client.ts'
import { failurePolicy, keyOf, quotaSize, subjectId } from '../support/failure/failure-policy.ts'
import { isLarge } from '../support/failure/is-large.ts'
import { startPrometheus } from '../support/failure/prometheus.ts'
import { startStack } from '../support/failure/stack.ts'
import { mastersOf, openStackRedis } from '../support/failure/stack-redis.ts'

const dashboards = resolve('infra/grafana/dashboards')

/** The policy of the failure suite, with a limit that delays, one in shadow, and an endpoint where nothing listens. */
function mixedPolicy(): string {
  const policy = parse(failurePolicy())
  const limits = {
    slow: { algorithm: 'token_bucket', size: 2, window: '1s', onExceed: { delay: '2s', queue: 100 } },
    tried: { algorithm: 'fixed_window', size: 1, window: '1m', mode: 'shadow' },
  }
  policy.plans.settled.limits.push(...Object.keys(limits))
  // Addresses are recorded where a limit counts by them.
  policy.limits['narrow-second'].by = ['subject', 'ip']
  Object.assign(policy.limits, limits)
  policy.endpoints.dead = { ...policy.endpoints.demo, url: 'http://127.0.0.1:9/' }
  return JSON.stringify(policy)
}

const stopping = new AbortController()

async function ask(port: number, path: string, key: string, body?: object): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    signal: AbortSignal.any([stopping.signal, AbortSignal.timeout(10_000)]),
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return text.startsWith('{') ? JSON.parse(text) : undefined
}

/** Requests of every kind, in turns, until the test stops them. What an outage fails is asked again next turn. */
async function load() {
  const { ingress, api, grpc } = stack.ports
  const rls = await createRlsClient(`127.0.0.1:${grpc}`)
  const about = { route: '/mixed', method: 'GET' }
  const settled = keyOf(subjectId('settled', 0))
  const turns: readonly ((turn: number) => Promise<unknown>)[] = [
    (turn) => ask(ingress, '/hello', keyOf(subjectId('wide', turn))),
    (turn) => ask(ingress, '/hello', keyOf(subjectId('narrow', turn % 2))),
    () => ask(ingress, '/hello', keyOf('nobody')),
    (turn) => ask(api, '/v1/check', keyOf(subjectId('quota', Math.floor(turn / quotaSize))), about),
    (turn) => ask(api, '/v1/check/batch', keyOf(subjectId('wide', turn)), { checks: [about, about] }),
    (turn) => ask(api, '/v1/authorize', keyOf(subjectId('wide', turn))),
    async () => {
      const { id } = Object(await ask(api, '/v1/check', settled, { ...about, cost: 5, settle: '1m', wait: '1s' }))
      return ask(api, '/v1/settle', settled, { id, cost: 1 })
    },
    (turn) =>
      rls.shouldRateLimit({
        domain: 'weir',
        descriptors: [
          {
            entries: [
              { key: 'subject', value: subjectId('wide', turn) },
              { key: 'route', value: '/mixed' },
            ],
          },
        ],
      }),
  ]
  const run = async (one: (turn: number) => Promise<unknown>) => {
    for (let turn = 0; !stopping.signal.aborted; turn += 1) {
      await one(turn).catch(() => undefined)
      await waitUntil(() => false, { deadlineMs: 20, everyMs: 20 })
    }
  }
  await Promise.all([...turns, ...turns].map(run))
  rls.close()
}

const stack = await startStack({ policy: mixedPolicy() })
const clickhouse = connectClickhouse(stack.addresses.clickhouse, 'monitoring-test')
const prometheus = await startPrometheus(stack)
const startedMs = Date.now()
const loads = load()

afterAll(async () => {
  stopping.abort()
  await loads
  await prometheus.close()
  await clickhouse.close()
  await stack.close()
}, 180_000) // services may take 20 s each to stop, and a busy machine more

const until = (query: string, deadlineMs: number) => prometheus.until(query, deadlineMs)

test('decisions become rows, and alerts are delivered', async () => {
  await until('sum(weir_insert_rows_count{topic="weir.outcomes.v1"}) > 0', 60_000)
  await until(
    'sum(weir_deliveries_total{result="delivered"}) > 0 and sum(weir_deliveries_total{result="failed"}) > 0',
    60_000,
  )
})

test('errors of a Redis without memory are counted by their code', async () => {
  const redis = openStackRedis(stack)
  const isThere = () =>
    redis.ping().then(
      () => true,
      () => false,
    )
  await waitUntil(isThere, { deadlineMs: 10_000 })
  const limit = (bytes: string) =>
    Promise.all(mastersOf(redis).map((master) => master.config('SET', 'maxmemory', bytes)))
  await limit('1')
  await until('sum(weir_redis_errors_total{code="OOM"}) > 0', 60_000).finally(() => limit('0'))
  redis.disconnect()
})

test.each([
  ['RedisGone', 'redis'],
  ['JournalBehind', 'kafka'],
])(
  '%s fires while %s is down, and ends when it is back',
  async (alert, server) => {
    const firing = `ALERTS{alertname="${alert}",alertstate="firing"}`
    await until(`vector(1) unless on () ${firing}`, 30_000)
    await stack.hold(server)
    await until(firing, 240_000).finally(() => stack.release(server))
    await until(`vector(1) unless on () ${firing}`, 120_000)
  },
  400_000,
)

test('usage is complete again, to some seconds ago', async () => {
  await until('max(time() - weir_usage_complete_timestamp_seconds) < 20', 120_000)
}, 130_000)

interface Panel {
  readonly title: string
  readonly targets?: readonly { readonly refId: string; readonly expr?: string; readonly rawSql?: string }[]
}

/** What a stack of one Redis, one Kafka and a ClickHouse without replicas cannot show. */
const withoutSeries = isLarge ? [] : ['redis: Replication lag A']

const targets = readdirSync(dashboards).flatMap((file) => {
  const { panels }: { panels: Panel[] } = JSON.parse(readFileSync(resolve(dashboards, file), 'utf8'))
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ refId, ...target }) => ({ name: `${file.replace('.json', '')}: ${title} ${refId}`, ...target })),
  )
})

describe('every target of the dashboards has data of a stack that was used', () => {
  const queries = targets.flatMap(({ name, expr }) => (expr === undefined ? [] : [{ name, expr }]))
  test.each(queries.filter(({ name }) => !withoutSeries.includes(name)))('$name', async ({ expr }) => {
    const query = expr.replaceAll('$__rate_interval', '10s').replaceAll(/\$(?:job|instance)/g, '.+')
    const range = `start=${startedMs / 1_000}&end=${Date.now() / 1_000}&step=5`
    const { result } = await prometheus.ask<{ result: { values: [number, string][] }[] }>(
      `query_range?query=${encodeURIComponent(query)}&${range}`,
    )
    const numbers = result.flatMap(({ values }) => values.map(([, value]) => Number(value)))
    expect(numbers.filter(Number.isFinite).length).toBeGreaterThan(0)
  })

  const questions = targets.flatMap(({ name, rawSql }) => (rawSql === undefined ? [] : [{ name, rawSql }]))
  test.each(questions)('$name', async ({ rawSql }) => {
    const [from, to] = [Math.floor(startedMs / 1_000) - 900, Math.ceil(Date.now() / 1_000)]
    const sql = rawSql
      .replaceAll(/\$__timeFilter(?:_ms)?\(([\w.]+)\)/g, `$1 >= toDateTime(${from}) AND $1 <= toDateTime(${to})`)
      .replaceAll(`$\{subject:sqlstring}`, `'${subjectId('wide', 0)}'`)
    expect((await readRows(clickhouse, sql)).length).toBeGreaterThan(0)
  })
})
