import { createClient } from '@weir/client'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type IngressStack, openIngressStack } from '../../support/ingress-stack.ts'
import { readMetric } from '../../support/read-metric.ts'
import type { RunningIngress } from '../../support/start-ingress.ts'

let stack: IngressStack
let ingress: RunningIngress
const policy = {
  version: 1,
  plans: { free: { limits: ['week'] }, queued: { limits: ['second'] } },
  limits: {
    week: { algorithm: 'fixed_window', window: '7d', size: 150 },
    second: { algorithm: 'sliding_log', window: '1s', size: 1, onExceed: { delay: '30s', queue: 10 } },
  },
  subjects: {
    ...Object.fromEntries(['many', 'same', 'alone', 'once'].map((name) => [name, { plan: 'free' }])),
    queued: { plan: 'queued' },
  },
  tokens: { app: { sha256: sha256('app-token'), scopes: ['check'] } },
}
beforeAll(async () => {
  stack = await openIngressStack(policy)
  ingress = await stack.start()
}, 180_000)
afterAll(() => stack?.close())

function open() {
  const client = createClient({ url: ingress.api, key: 'app-token', timeoutMs: 10_000 })
  onTestFinished(() => client.close())
  return client
}

test('Concurrent checks of a client are decided exactly, in few calls of the script, each with its own record', async () => {
  const client = open()
  const calls = () => readMetric(ingress.ops, 'weir_redis_call_decisions_count')
  const before = await calls()
  const results = await Promise.all(Array.from({ length: 250 }, () => client.check({ subject: 'many' })))
  const allowed = results.filter((one) => one.allowed)
  expect(allowed).toHaveLength(150)
  expect(new Set(allowed.map(({ id }) => id)).size).toBe(150)
  expect(allowed.map(({ limits }) => limits[0]?.used).toSorted((a = 0, b = 0) => a - b)).toEqual(
    Array.from({ length: 150 }, (_, at) => at + 1),
  )
  // 3 batches of 100, 100 and 50, 32 decisions to a call.
  expect((await calls()) - before).toBeLessThanOrEqual(10)
})

test('A check in a batch results in what a check of its own does, word for word', async () => {
  const client = open()
  const requests = [
    { subject: 'same', cost: 2 },
    { subject: 'same', cost: 149 },
    { subject: 'same', cost: 1_000 },
    { key: 'unknown-key' },
    { subject: 'same', peek: true },
    { subject: 'unknown' },
    { subject: 'same', route: '/a%2Fb' },
  ]
  const shown = (found: PromiseSettledResult<unknown>) =>
    JSON.stringify(found.status === 'fulfilled' ? found.value : [String(found.reason), found.reason.problem])
      // The seconds go on between the two.
      .replace(/(?<=reset_?ms":|retryAfterMs":|t=|retry-after":")\d+/gi, '0')
      .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'id')
  const together = await Promise.allSettled(requests.map((one) => client.check(one)))
  const alone: string[] = []
  for (const one of requests) {
    const subject = 'subject' in one && one.subject === 'same' ? { subject: 'alone' } : {}
    alone.push(...(await Promise.allSettled([client.check({ ...one, ...subject })])).map(shown))
  }
  expect(together.map(shown)).toEqual(alone)
})

test('An idempotency key charges once in a batch and over batches', async () => {
  const client = open()
  const request = { subject: 'once', cost: 5, idempotencyKey: 'order 1' }
  const first = await Promise.all([client.check(request), client.check(request), client.check({ subject: 'once' })])
  const again = await Promise.all([client.check(request), client.check({ subject: 'once', peek: true })])
  expect([first[1]?.id, again[0]?.id]).toEqual([first[0]?.id, first[0]?.id])
  expect(again[1]?.limits[0]?.used).toBe(6)
})

test('Checks that wait for capacity leave the checks of the same moment their own pace', async () => {
  const client = open()
  await client.check({ subject: 'queued' })
  let isAdmitted = false
  const waiting = client.check({ subject: 'queued', wait: '20s' }).then((result) => {
    isAdmitted = true
    return result
  })
  const others = await Promise.all(Array.from({ length: 20 }, () => client.check({ subject: 'queued' })))
  expect([others.map(({ allowed }) => allowed), isAdmitted]).toEqual([others.map(() => false), false])
  expect(await waiting).toMatchObject({ allowed: true })
})
