import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { openAlertingStack } from '../../support/alerting/open-alerting.ts'
import { forFile } from '../../support/opened.ts'
import { until } from '../../support/until.ts'

const stack = await forFile(openAlertingStack(['ops']))

const received = (subject: string) => stack.received.filter(({ body }) => JSON.parse(body).data.subject === subject)

async function askRedis<T>(ask: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(stack.redis.address)
  const answer = await ask(redis)
  redis.disconnect()
  return answer
}
/** A job waits for its next try. */
const isPutOff = async () => (await askRedis((redis) => redis.zcard('bull:weir-deliveries:delayed'))) === 1

const known = async (subject: string) => {
  const [row] = await stack.rows<{ n: number }>(
    `SELECT toUInt32(count()) AS n FROM weir.alerts WHERE subject = '${subject}'`,
  )
  return row?.n ?? 0
}

test('after a restart of everything within a schedule the next attempt comes when it was due', async () => {
  stack.answer('/ops', (out) => out.writeHead(500).end())
  const before = await stack.start()
  await stack.decide(['patient'], 800)
  await until(() => received('patient').length === 1)
  const [first] = received('patient')
  await until(isPutOff)
  await before.kill('SIGKILL')
  await stack.redis.kill('SIGTERM')
  await stack.redis.restart()
  stack.answer('/ops', (out) => out.writeHead(204).end())
  await stack.start()
  await until(() => received('patient').length === 2)
  const [, second] = received('patient')
  const pauseMs = (second?.atMs ?? 0) - (first?.atMs ?? 0)
  process.stdout.write(`  second try ${pauseMs} ms after the first, due after 5 to 6 s\n`)
  expect(pauseMs).toBeGreaterThan(4_900)
  expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
})

test('after Redis lost all data no alert is raised again, and undelivered alerts are delivered', async () => {
  await stack.decide(['known'], 800)
  await until(() => received('known').length === 1)
  stack.answer('/ops', (out) => out.writeHead(503, { 'retry-after': '30' }).end())
  await stack.decide(['waiting'], 800)
  await until(() => received('waiting').length === 1)
  await until(async () => (await known('known')) === 1 && (await known('waiting')) === 1)
  await askRedis((redis) => redis.flushall())
  stack.answer('/ops', (out) => out.writeHead(204).end())
  // A process that remembers nothing reads that both are above their threshold.
  const another = await stack.start()
  await stack.decide(['known', 'waiting'], 810)
  await until(() => received('waiting').length === 2, 120_000)
  await stack.decide(['marker'], 800)
  await until(() => received('marker').length === 1)
  expect([received('known').length, received('waiting').length]).toEqual([1, 2])
  const ids = new Set(received('waiting').map(({ headers }) => headers['webhook-id']))
  expect(ids.size).toBe(1)
  await another.kill('SIGTERM')
}, 240_000)
