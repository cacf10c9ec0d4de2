import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { expect, test } from 'vitest'
import { checkMetrics } from '../support/check-metrics.ts'
import { forTest } from '../support/opened.ts'
import { metricIn } from '../support/read-metric.ts'
import { startServer } from '../support/servers/start-server.ts'
import { startIngress } from '../support/start-ingress.ts'

const named = <T>(count: number, prefix: string, make: (n: number) => T): Record<string, T> =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`${prefix}${n}`, make(n)]))

/** Enough that what else the process does meanwhile says little. */
const scrapes = 50

const policy = {
  version: 1,
  limits: named(1_000, 'limit-', () => ({ algorithm: 'fixed_window', size: 100_000, window: '1m' })),
  plans: named(100, 'plan-', (n) => ({ limits: Array.from({ length: 10 }, (_, at) => `limit-${10 * n + at}`) })),
  upstreams: named(50, 'upstream-', (n) => ({ url: 'http://127.0.0.1:1', hosts: [`host-${n}.example`] })),
  routes: Array.from({ length: 2_000 }, (_, n) => ({ match: `GET /route-${n}` })),
  subjects: named(100_000, 'subject-', (n) => ({ plan: `plan-${n % 100}` })),
  tokens: { ci: { sha256: createHash('sha256').update('ci-token').digest('hex'), scopes: ['check'] } },
}

test('With 1,000 limits, 2,000 routes and 100,000 subjects a scrape takes 20 ms of CPU and 3,000 series at most, and names no subject', async () => {
  const redis = await forTest(startServer(redisServer))
  const [noKafka] = await freePorts(1)
  const policyFile = `${redis.dir}/weir.yaml`
  await writeFile(policyFile, JSON.stringify(policy))
  const ingress = await forTest(
    startIngress({
      WEIR_POLICY_FILE: policyFile,
      WEIR_REDIS_URL: redis.address,
      WEIR_KAFKA_BROKERS: `127.0.0.1:${noKafka}`,
    }),
  )
  const scrape = async () => (await fetch(`${ingress.ops}/metrics`)).text()
  const countOf = (page: string, name: string) => [
    metricIn(page, name),
    page.split('\n').filter((line) => line.startsWith(`${name}{`)).length,
  ]
  // Every name is there before its first event.
  expect(countOf(await scrape(), 'weir_limit_decisions_total')).toEqual([0, 2 * 101])
  for (let batch = 0; batch < 100; batch += 1) {
    const checks = Array.from({ length: 100 }, (_, n) => ({
      subject: `subject-${1_000 * batch + 10 * n + (batch % 10)}`,
      route: `GET /route-${(100 * batch + n) % 2_000}`,
    }))
    const answer = await fetch(`${ingress.api}/v1/check/batch`, {
      method: 'POST',
      headers: { authorization: 'Bearer ci-token', 'content-type': 'application/json' },
      body: JSON.stringify({ checks }),
    })
    expect(answer.status).toBe(200)
    await answer.text()
  }
  const cpuSeconds = (of: string) => metricIn(of, 'process_cpu_seconds_total') ?? 0
  const before = await scrape()
  let page = before
  for (let n = 0; n < scrapes; n += 1) page = await scrape()
  expect(page.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length).toBeLessThan(3_000)
  expect(page).not.toContain('subject-')
  // CPU of the process, because the machine is shared.
  expect((cpuSeconds(page) - cpuSeconds(before)) / scrapes).toBeLessThan(0.02)
  expect(metricIn(page, 'weir_decisions_total{entry_point="batch",outcome="allow",reason="ok"')).toBe(10_000)
  expect(metricIn(page, 'weir_decision_source_total{source="redis"')).toBe(10_000)
  expect(metricIn(page, 'weir_decision_duration_seconds_count{entry_point="batch"')).toBe(10_000)
  expect(countOf(page, 'weir_limit_decisions_total')).toEqual([100_000, 2 * 101])
  expect(metricIn(page, 'weir_limit_utilization_ratio_count')).toBe(100_000)
  expect(countOf(page, 'weir_route_decisions_total')).toEqual([10_000, 2 * 201])
  expect(countOf(page, 'weir_plan_decisions_total')).toEqual([10_000, 2 * 51])
  expect(metricIn(page, 'weir_http_request_duration_seconds_count{entry_point="batch",code="2xx"')).toBe(100)
  expect(metricIn(page, 'weir_redis_call_decisions_sum')).toBeGreaterThanOrEqual(10_000)
  expect(checkMetrics(page)).toBe('')
}, 180_000)
