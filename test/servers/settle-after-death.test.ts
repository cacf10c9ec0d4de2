import { createHash, randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { parseDecision } from '@weir/contracts/decision.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, inject, onTestFinished, test } from 'vitest'
import { kafkaOptions } from '../support/servers/kafka-topics.ts'
import { journalBase } from '../support/servers/open-test-journal.ts'
import { type ReadRecord, readTopic } from '../support/servers/read-topic.ts'
import { startServer } from '../support/servers/start-server.ts'
import { startIngress } from '../support/start-ingress.ts'

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
/** Below the minute after which another process writes what is still owed. */
const toldWithinMs = 40_000

async function ask(api: string, path: string, key: string, body: object) {
  const headers = { 'content-type': 'application/json', 'x-api-key': key }
  const answer = await fetch(`${api}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: answer.status, body: Object(await answer.json()) }
}

test('a process killed after it wrote a correction: another that lives on its machine takes its journal over, and a repeat there writes none', async () => {
  const kafka = await startServer(kafkaServer)
  onTestFinished(() => kafka.close())
  await ensureTopics(kafkaOptions(kafka.address), await readTopics())
  const subject = `settled-${randomUUID()}`
  const base = await journalBase()
  const policyFile = `${kafka.dir}/weir.yaml`
  const policy = {
    ...{ version: 1, plans: { free: { limits: ['day'] } } },
    limits: { day: { algorithm: 'fixed_window', size: 100, window: '7d' } },
    subjects: { [subject]: { plan: 'free', keys: [{ sha256: sha256(subject) }] } },
  }
  await writeFile(policyFile, JSON.stringify(policy))
  const environment = {
    ...{ WEIR_POLICY_FILE: policyFile, WEIR_REDIS_URL: inject('redisUrl'), WEIR_KAFKA_BROKERS: kafka.address },
    WEIR_JOURNAL_DIR: base,
  }
  const living = await startIngress(environment)
  onTestFinished(() => living.close())
  const dying = await startIngress({ ...environment, WEIR_CRASH_AT: 'ingress.settle.written' })
  onTestFinished(() => dying.close())

  const checked = await ask(dying.api, '/v1/check', subject, { cost: 5, settle: '10m' })
  const wish = { id: checked.body.id, cost: 3 }
  await expect(ask(dying.api, '/v1/settle', subject, wish)).rejects.toThrow()
  const isSettled = async () => (await ask(living.api, '/v1/settle', subject, wish)).status === 200
  expect(await waitUntil(isSettled, { deadlineMs: toldWithinMs, everyMs: 500 })).toBe(true)

  // A second correction would stand before this, in the same journal and partition.
  const { body: last } = await ask(living.api, '/v1/check', subject, { cost: 1 })
  const found = (records: readonly ReadRecord[]) =>
    records.flatMap(({ value }) => {
      const parsed = parseDecision(value ?? Buffer.alloc(0))
      return parsed.kind === 'decision' && parsed.decision.subject === subject ? [parsed.decision] : []
    })
  const isAll = (records: readonly ReadRecord[]) =>
    found(records).some(({ id }) => id === last.id) && found(records).some(({ corrects }) => corrects !== undefined)
  const records = found(await readTopic(kafkaOptions(kafka.address), topics.decisions, isAll))
  const corrections = new Map(records.filter(({ corrects }) => corrects !== undefined).map((one) => [one.journal, one]))
  expect([...corrections.values()]).toMatchObject([{ corrects: wish.id, adjustment: -2 }])
})
