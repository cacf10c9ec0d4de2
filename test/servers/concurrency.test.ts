import { writeFile } from 'node:fs/promises'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { afterAll, expect, test } from 'vitest'
import { startCountingUpstream } from '../support/counting-upstream.ts'
import { forFile } from '../support/opened.ts'
import { createSeededRandom } from '../support/seeded-random.ts'
import { startServer } from '../support/servers/start-server.ts'
import { type RunningIngress, startIngress } from '../support/start-ingress.ts'
import { until } from '../support/until.ts'

const size = 5

const upstream = await forFile(startCountingUpstream())
const { most } = upstream

const subjects = ['a', 'b', 'killed', 'queued', 'checked', 'failed']
const policy = {
  version: 1,
  limits: {
    'in-flight': { algorithm: 'concurrency', size, expires: '5s' },
    minute: { algorithm: 'fixed_window', size: 100_000, window: '7d' },
    queue: { algorithm: 'concurrency', size: 2, onExceed: { delay: '20s', queue: 100 } },
  },
  plans: { free: { limits: ['in-flight', 'minute'] }, queued: { limits: ['queue'] } },
  upstreams: { api: { url: upstream.url, hosts: ['*'], timeout: '2m' } },
  routes: [{ match: 'GET /flaky', refundOn: [500] }],
  subjects: Object.fromEntries(
    subjects.map((name) => [
      name,
      { plan: name === 'queued' ? 'queued' : 'free', keys: [{ sha256: sha256(name), id: name }] },
    ]),
  ),
  tokens: { gate: { sha256: sha256('gate'), scopes: ['check'] } },
}

const server = await forFile(startServer(redisServer))
const redis = connectRedis(server.address, { role: 'limiter', onError: () => {} })
afterAll(() => redis.disconnect())
const [noKafka] = await freePorts(1)
const policyFile = `${server.dir}/weir.yaml`
await writeFile(policyFile, JSON.stringify(policy))
const start = () =>
  startIngress({
    WEIR_POLICY_FILE: policyFile,
    WEIR_REDIS_URL: server.address,
    WEIR_KAFKA_BROKERS: `127.0.0.1:${noKafka}`,
  })
const processes: RunningIngress[] = [await start(), await start()]
afterAll(async () => {
  for (const one of processes) await one.close()
})

const [first] = processes
const at = (n: number) => processes[n % processes.length] as RunningIngress
const get = (n: number, subject: string, headers: Record<string, string> = {}, path = '/v1/x', signal?: AbortSignal) =>
  fetch(`${at(n).proxy}${path}`, { headers: { 'x-api-key': subject, ...headers }, signal: signal ?? null })

/** Slots that Redis counts now. */
async function slots(subject: string, limit = 'in-flight'): Promise<number> {
  const bytes = await redis.getBuffer(`weir:1:{${subject}}:${limit}`)
  let count = 0
  for (let from = 1; bytes !== null && from < bytes.length; from += 12) {
    if (bytes.readUInt32BE(from) * 1_000 > Date.now()) count += bytes.readDoubleBE(from + 4)
  }
  return count
}

test('Two processes never have more requests in flight than the size, whatever ends them, and every slot is given back', async () => {
  const delays = monitorEventLoopDelay()
  delays.enable()
  const random = createSeededRandom()
  const statuses: number[] = []
  const work = async (worker: number) => {
    for (let round = 0; round < 40; round += 1) {
      const headers = { 'x-ms': `${random.integer(0, 30)}`, 'x-end': random.pick(['', '', '500', 'close']) }
      const subject = random.pick(['a', 'b'])
      const signal = random.oneIn(12) ? AbortSignal.timeout(random.integer(1, 25)) : undefined
      const answer = await get(worker, subject, headers, random.pick(['/v1/x', '/flaky']), signal).catch(
        () => undefined,
      )
      statuses.push(answer?.status ?? 0)
      await answer?.text().catch(() => '')
    }
  }
  await Promise.all(Array.from({ length: 24 }, (_, worker) => work(worker)))
  process.stdout.write(`  WEIR_TEST_SEED=${random.seed}: ${JSON.stringify([...most])}, ${statuses.length} requests\n`)
  // Weir gives a slot back 250 ms after it closed a connection; on a busy machine this upstream may notice later.
  const isLate = delays.max / 1e6 > 150
  for (const subject of ['a', 'b']) expect(most.get(subject)).toBeLessThanOrEqual(isLate ? size + 1 : size)
  expect(statuses).toContain(429)
  await until(async () => (await slots('a')) + (await slots('b')) === 0)
  // Each may use all of it again.
  const again = await Promise.all(Array.from({ length: size }, (_, n) => get(n, 'a', { 'x-ms': '100' })))
  expect(again.map(({ status }) => status)).toEqual(Array(size).fill(200))
  expect(most.get('a')).toBeGreaterThanOrEqual(size)
})

test('A refusal names no time but a guess, and the headers say that requests in flight are counted', async () => {
  const open = await Promise.all(Array.from({ length: size }, (_, n) => get(n, 'failed', { 'x-ms': 'hold' })))
  const [one] = open
  expect(one?.headers.get('ratelimit-policy')).toContain(`"in-flight";q=${size};qu="concurrent-requests"`)
  expect(one?.headers.get('ratelimit')).toMatch(/^"in-flight";r=\d, /)
  const refused = await get(0, 'failed')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  expect(await refused.json()).toMatchObject({ 'violated-policies': ['in-flight'] })
  // The limits beside it were not charged.
  expect(refused.headers.get('ratelimit')).toContain(`"minute";r=${100_000 - size}`)
  upstream.endHeld()
  await until(async () => (await slots('failed')) === 0)
})

test('Beyond the size a queue waits for the slots that this process gives back', async () => {
  const fromMs = performance.now()
  const answers = await Promise.all(Array.from({ length: 12 }, () => get(0, 'queued', { 'x-ms': '20' })))
  expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200))
  expect(most.get('queued')).toBe(2)
  process.stdout.write(
    `  12 requests of 20 ms, two at a time, through a queue: ${Math.round(performance.now() - fromMs)} ms\n`,
  )
})

const ask = async (path: string, body: object) => {
  const answer = await fetch(`${first?.api}${path}`, {
    method: 'POST',
    headers: { authorization: 'Bearer gate', 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

test('A check with settle holds its slot until it is settled, another one for as long as the limit says', async () => {
  const checks = await Promise.all(
    Array.from({ length: size }, () => ask('/v1/check', { subject: 'checked', settle: '15m' })),
  )
  expect(checks.map(({ body }) => body.allowed)).toEqual(Array(size).fill(true))
  expect((await ask('/v1/check', { subject: 'checked' })).body).toMatchObject({
    allowed: false,
    denied_by: 'in-flight',
  })
  const id = checks[0]?.body.id
  expect(await ask('/v1/settle', { subject: 'checked', id, cost: 1 })).toMatchObject({ status: 200 })
  expect(await ask('/v1/settle', { subject: 'checked', id, cost: 1 })).toMatchObject({ status: 200 })
  expect(await slots('checked')).toBe(size - 1)
  expect((await ask('/v1/check', { subject: 'checked' })).body).toMatchObject({ allowed: true })
  await until(async () => (await slots('checked')) === size - 1, 10_000)
})

test('A gateway at /v1/authorize is told that it cannot say when a request ends', async () => {
  const answer = await fetch(`${first?.api}/v1/authorize/v1/x`, { headers: { 'x-api-key': 'a' } })
  expect([answer.status, ((await answer.json()) as { type: string }).type]).toEqual([
    501,
    'urn:weir:problem:concurrency-unsupported',
  ])
})

test('Streams longer than a slot lasts keep theirs; those of a killed process are free 32 s later', async () => {
  const [dying, living] = [await start(), at(1)]
  const open = (ingress: RunningIngress) =>
    fetch(`${ingress.proxy}/v1/x`, { headers: { 'x-api-key': 'killed', 'x-ms': 'hold' } })
  const kept = await open(living)
  const lost = await Promise.all([open(dying), open(dying)])
  expect([kept.status, ...lost.map(({ status }) => status)]).toEqual([200, 200, 200])
  expect(await slots('killed')).toBe(3)
  process.kill(dying.pid, 'SIGKILL')
  const killedMs = Date.now()
  await until(async () => (await slots('killed')) === 1, 40_000)
  process.stdout.write(`  slots of a killed process are free after ${((Date.now() - killedMs) / 1_000).toFixed(1)} s\n`)
  expect(Date.now() - killedMs).toBeLessThan(34_000)
  upstream.endHeld()
  await kept.text()
  await until(async () => (await slots('killed')) === 0)
  await dying.close()
}, 60_000)
