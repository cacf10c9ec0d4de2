import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, expect, inject, test } from 'vitest'
import { startConsoleOnKafka } from '../../support/console-stack.ts'
import { type RunningIngress, startIngress } from '../../support/start-ingress.ts'
import { until } from '../../support/until.ts'
import { runWeir } from '../../support/weir-up.ts'

/** What the API promises, and what a busy machine may add to it. */
const inForceMs = 1_000
const deadlineMs = 10_000

const policy = `
version: 1
plans: { free: { limits: [minute] } }
limits: { minute: { algorithm: fixed_window, size: 100000, window: 1m, block: 10m } }
subjects: { acme: { plan: free } }
`
const { kafka, desk: admin, close } = await startConsoleOnKafka({ policy })
const servers = { WEIR_KAFKA_BROKERS: kafka.address, WEIR_REDIS_URL: inject('redisUrl') }
const ingresses = await Promise.all(
  [1, 2].map(() => startIngress({ ...servers, WEIR_POLICY_FILE: '/nowhere/weir.yaml' })),
)
afterAll(async () => {
  await Promise.all(ingresses.map((one) => one.close()))
  await close()
})

const weir = (...args: string[]) => runWeir(args, admin.environment)

async function statusOf({ api }: RunningIngress, key: string): Promise<number> {
  const response = await fetch(`${api}/v1/check`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: '{}',
  })
  await response.body?.cancel()
  return response.status
}

/** How long until every ingress answers so, counted from now; they are asked all the time. */
async function msUntilAll(key: string, status: number): Promise<number> {
  const sinceMs = performance.now()
  const all = async () => (await Promise.all(ingresses.map((one) => statusOf(one, key)))).every((one) => one === status)
  const done = await waitUntil(all, { deadlineMs, everyMs: 5 })
  expect([key.slice(0, 5), status, done]).toEqual([key.slice(0, 5), status, true])
  return performance.now() - sinceMs
}

test('a key made from the command line opens every ingress within a second, and a revoked one none', async () => {
  const { stdout, code } = await weir('keys', 'create', 'acme', '--id', 'first')
  expect(code).toBe(0)
  const key = stdout.trim()
  expect(await msUntilAll(key, 200)).toBeLessThan(inForceMs)
  expect((await weir('keys', 'revoke', 'first')).code).toBe(0)
  expect(await msUntilAll(key, 401)).toBeLessThan(inForceMs)
})

test('of a rotated key both work until the old one ends at its time', async () => {
  const old = (await weir('keys', 'create', 'acme', '--id', 'old')).stdout.trim()
  const { stdout } = await weir('keys', 'rotate', 'old', '--overlap', '4s', '--new-id', 'new', '--json')
  const rotated: { readonly key: string; readonly old: { readonly expires: string } } = JSON.parse(stdout)
  await msUntilAll(rotated.key, 200)
  const endsMs = Date.parse(rotated.old.expires)
  const answers: { readonly startedMs: number; readonly endedMs: number; readonly status: number }[] = []
  await waitUntil(
    async () => {
      const startedMs = Date.now()
      const [first] = ingresses
      const status = first === undefined ? 0 : await statusOf(first, old)
      answers.push({ startedMs, endedMs: Date.now(), status })
      return status === 401
    },
    { deadlineMs: 20_000, everyMs: 20 },
  )
  const surely = (isBefore: boolean) =>
    answers.filter(({ startedMs, endedMs }) => (isBefore ? endedMs < endsMs : startedMs > endsMs))
  expect(surely(true).map(({ status }) => status)).toEqual(surely(true).map(() => 200))
  expect(surely(false).map(({ status }) => status)).toEqual(surely(false).map(() => 401))
  expect(answers.at(-1)?.status).toBe(401)
  await msUntilAll(rotated.key, 200)
})

test('fifty keys made and revoked through the API are each in force everywhere within a second', async () => {
  const times: number[] = []
  for (let n = 0; n < 50; n += 1) {
    const made = await admin.ask<{ readonly key: string; readonly id: string }>('POST /v1/subjects/acme/keys', {})
    times.push(await msUntilAll(made.body.key, 200))
    await admin.ask(`DELETE /v1/keys/${made.body.id}`)
    times.push(await msUntilAll(made.body.key, 401))
  }
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) => Math.round(sorted[Math.floor(share * sorted.length)] ?? 0)
  process.stderr.write(`from the answer until in force in two processes: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms\n`)
  expect(at(0.99)).toBeLessThan(inForceMs)
})

test('a reset through the API admits immediately a subject that an ingress remembers as denied', async () => {
  await admin.ask('PUT /v1/limits/minute', { algorithm: 'fixed_window', size: 2, window: '1m', block: '10m' })
  const { key } = (await admin.ask<{ readonly key: string }>('POST /v1/subjects/acme/keys', {})).body
  const check = async () => {
    const [first] = ingresses
    const response = await fetch(`${first?.api}/v1/check`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: '{}',
    })
    // Not there while the key is not in force yet.
    const answer: { readonly allowed?: boolean } = JSON.parse(await response.text())
    return answer.allowed
  }
  const times: number[] = []
  for (let round = 0; round < 5; round += 1) {
    // Refused by Redis and remembered for a second, so that the next refusal is from memory.
    await until(async () => (await check()) === false, deadlineMs)
    expect(await check()).toBe(false)
    expect((await admin.ask('POST /v1/subjects/acme/limits/reset', {})).status).toBe(200)
    const sinceMs = performance.now()
    await until(async () => (await check()) === true, deadlineMs)
    times.push(performance.now() - sinceMs)
  }
  // Half of what is remembered without the notice; most rounds, because a busy machine may add to any.
  expect(times.toSorted((a, b) => a - b)[2]).toBeLessThan(500)
})
