import { parseDecision } from '@weir/contracts/decision.v1.ts'
import type { DecisionRecordV1 } from '@weir/contracts/decision-columns.ts'
import { kindOf } from '@weir/contracts/journal.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { expect, test } from 'vitest'
import { openIngressStack } from '../support/ingress-stack.ts'
import { folderForTest, forFile, forTest } from '../support/opened.ts'
import { readMetric } from '../support/read-metric.ts'
import { kafkaOptions } from '../support/servers/kafka-topics.ts'
import { type ReadRecord, readTopic } from '../support/servers/read-topic.ts'

const subjects = ['calm', 'killed']
const policy = {
  version: 1,
  plans: { free: { limits: ['week'] } },
  limits: { week: { algorithm: 'fixed_window', window: '7d', size: 10 } },
  subjects: Object.fromEntries(subjects.map((name) => [name, { plan: 'free', keys: [{ sha256: sha256(name) }] }])),
}

const stack = await forFile(openIngressStack(policy))

const start = (journalDir: string) => stack.start({ WEIR_JOURNAL_DIR: journalDir })

/** What clients were answered: how often under which id, and how many requests had no answer. */
interface Answered {
  readonly byId: Map<string, number>
  cutOff: number
}

/**
 * Asks over and over on some connections, in turn with a good key and a wrong one, until so many are answered or nobody
 * answers.
 */
async function flood(api: string, key: string, requests: number, answered: Answered, onAnswer: (n: number) => void) {
  let sent = 0
  let count = 0
  const connection = async () => {
    while (sent < requests) {
      sent += 1
      const headers = { 'x-api-key': sent % 3 === 0 ? `wrong key of ${key}` : key }
      try {
        const response = await fetch(`${api}/v1/authorize/x`, { headers, signal: AbortSignal.timeout(10_000) })
        await response.body?.cancel()
        const id = response.headers.get('weir-decision') ?? 'none'
        answered.byId.set(id, (answered.byId.get(id) ?? 0) + 1)
        count += 1
        onAnswer(count)
      } catch {
        answered.cutOff += 1
        return
      }
    }
  }
  await Promise.all(Array.from({ length: 16 }, connection))
}

/** Kafka may hold a record twice after a kill, under one number: once each, as metering counts them. */
function decisions(records: readonly Pick<ReadRecord, 'partition' | 'value'>[]): DecisionRecordV1[] {
  const numbered = new Map<string, DecisionRecordV1>()
  for (const { partition, value } of records) {
    const parsed = value === null || kindOf(value) !== 'record' ? undefined : parseDecision(value)
    if (parsed?.kind !== 'decision') continue
    const { journal, seq } = parsed.decision
    numbered.set(`${journal} ${partition} ${seq}`, parsed.decision)
  }
  return [...numbered.values()]
}

/** All decision records of the topic, once every one of these ids is among them. */
async function recordsWith(ids: Iterable<string>): Promise<DecisionRecordV1[]> {
  const wanted = [...ids]
  const found = await readTopic(kafkaOptions(stack.kafka.address), topics.decisions, (records) => {
    const known = new Set(decisions(records).map(({ id }) => id))
    return wanted.every((id) => known.has(id))
  })
  return decisions(found)
}

test('a flood of refusals from memory and of unknown callers is in Kafka in exact sums, few records for many answers', async () => {
  const ingress = await forTest(start(await folderForTest('floods')))
  const answered: Answered = { byId: new Map(), cutOff: 0 }
  await flood(ingress.api, 'calm', 6_000, answered, () => undefined)
  expect([answered.cutOff, answered.byId.has('none')]).toEqual([0, false])
  const records = await recordsWith(answered.byId.keys())
  const counts = new Map(records.map(({ id, count }) => [id, count]))
  expect(counts).toEqual(answered.byId)
  expect(records).toHaveLength(counts.size)
  const allowed = records.filter(({ outcome }) => outcome === 'allow')
  expect(allowed.map(({ count }) => count)).toEqual(Array.from({ length: 10 }, () => 1))
  const nobody = records.filter(({ subject }) => subject === '_unauthenticated')
  expect(nobody.reduce((sum, { count }) => sum + count, 0)).toBe(2_000)
  const summed = await readMetric(ingress.ops, 'weir_denials_summed_total')
  const single = records.filter(({ count }) => count === 1).length
  expect(summed).toBeGreaterThan(6_000 - single - 1)
  expect(records.length).toBeLessThan(300)
}, 120_000)

test('a kill amid a flood loses no refusal that was answered, and counts none twice', async () => {
  const journalDir = await folderForTest('floods')
  const ingress = await start(journalDir)
  const answered: Answered = { byId: new Map(), cutOff: 0 }
  await flood(ingress.api, 'killed', 100_000, answered, (count) => {
    if (count === 3_000) process.kill(ingress.pid, 'SIGKILL')
  })
  expect(answered.cutOff).toBeGreaterThan(0)
  await forTest(start(journalDir))
  const records = await recordsWith(answered.byId.keys())
  const counts = new Map<string, number>()
  for (const { id, count } of records) counts.set(id, (counts.get(id) ?? 0) + count)
  const surplus = [...answered.byId].map(([id, count]) => (counts.get(id) ?? 0) - count)
  expect(Math.min(...surplus)).toBe(0)
  // What the process had counted when it died, and could not answer any more.
  expect(surplus.reduce((sum, more) => sum + more, 0)).toBeLessThanOrEqual(answered.cutOff)
  expect(records.filter(({ id }) => answered.byId.has(id))).toHaveLength(answered.byId.size)
}, 120_000)
