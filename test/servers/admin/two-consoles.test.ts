import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, inject, onTestFinished, test } from 'vitest'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { startServer } from '../../support/servers/start-server.ts'
import { type RunningConsole, startConsole } from '../../support/start-console.ts'

const policyText = `
version: 1
plans: { free: { limits: [] }, gold: { limits: [] } }
subjects: { acme: { plan: free } }
`

const policyOf = async (admin: RunningConsole) => (await admin.ask('GET /v1/policy')).body

test('of two consoles one whose change no longer fits says so, and leaves nothing of it behind', async () => {
  // A Kafka of this test's own: the policy's topic has one name.
  const kafka = await startServer(kafkaServer)
  onTestFinished(() => kafka.close())
  await ensureTopics(kafkaOptions(kafka.address), await readTopics())
  const environment = { WEIR_KAFKA_BROKERS: kafka.address, WEIR_CLICKHOUSE_URL: inject('clickhouseUrl') }
  const [first, second] = await Promise.all([startConsole(environment), startConsole(environment)])
  onTestFinished(async () => {
    await Promise.all([first.close(), second.close()])
  })
  expect((await first.ask('PUT /v1/policy', policyText)).status).toBe(200)
  let crossed = 0
  for (let round = 0; round < 60 && crossed < 3; round += 1) {
    expect((await first.ask('PUT /v1/plans/gold', { limits: [] })).status).toBeLessThan(300)
    expect((await first.ask('PUT /v1/subjects/acme', { plan: 'free' })).status).toBe(200)
    const agree = async () => JSON.stringify(await policyOf(first)) === JSON.stringify(await policyOf(second))
    expect(await waitUntil(agree, { deadlineMs: 30_000, everyMs: 5 })).toBe(true)
    // Each is right by itself; together they would leave a subject without a plan.
    const [gone, put] = await Promise.all([
      first.ask('DELETE /v1/plans/gold'),
      second.ask('PUT /v1/subjects/acme', { plan: 'gold' }),
    ])
    expect([gone.status, put.status]).not.toEqual([204, 200])
    if (gone.status === 409 || put.status === 409) crossed += 1
    expect(await waitUntil(agree, { deadlineMs: 30_000, everyMs: 5 })).toBe(true)
    expect((await policyOf(first)) as object).toMatchObject({
      subjects: { acme: { plan: put.status === 200 ? 'gold' : 'free' } },
    })
  }
  expect(crossed).toBe(3)
  const lived = await policyOf(first)
  await second.kill()
  await second.restart()
  expect(await policyOf(second)).toEqual(lived)
  const ready = await fetch(`${second.ops}/readyz`)
  expect([ready.status, await ready.text()]).toEqual([200, 'ok\n'])
})
