import { isDeepStrictEqual } from 'node:util'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { readRows } from '@weir/clickhouse/connect.ts'
import { parseDecision } from '@weir/contracts/decision.v1.ts'
import type { DecisionRecordV1 } from '@weir/contracts/decision-columns.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect } from 'vitest'
import { readTopic } from './servers/read-topic.ts'

/** A whole Weir with the demo's subjects, on whatever servers, and the test's own ways into these. */
export interface Pipeline {
  readonly ingress: string
  readonly receiver: string
  readonly demoKey: string
  readonly demoSmallKey: string
  readonly kafka: KafkaOptions
  readonly clickhouse: ClickHouseClient
}

/** GETs the demo API through the ingress so often, over so many connections at a time; the statuses and headers. */
async function request(ingress: string, count: number, connections: number, key: string): Promise<Response[]> {
  const answers: Response[] = []
  let left = count
  const one = async () => {
    while (left-- > 0) {
      const answer = await fetch(`${ingress}/hello`, { headers: { 'x-api-key': key } })
      await answer.arrayBuffer()
      answers.push(answer)
    }
  }
  await Promise.all(Array.from({ length: connections }, one))
  return answers
}

/** Begins in the first half of an aligned minute, so that the requests fall into one window. */
const untilEarlyInTheMinute = () => waitUntil(() => Date.now() % 60_000 < 30_000, { deadlineMs: 35_000, everyMs: 250 })

async function sums({ clickhouse }: Pick<Pipeline, 'clickhouse'>, table: string, where: string) {
  const query = `SELECT toUInt32(sum(count)) AS decisions, toUInt32(sumIf(count, outcome = 'allow')) AS allowed FROM weir.${table} WHERE ${where}`
  const [row] = await readRows<{ decisions: number; allowed: number }>(clickhouse, query)
  return row
}

/** The raw table and every rollup come to this, within 5 s. */
async function expectSums({ clickhouse }: Pick<Pipeline, 'clickhouse'>, where: string, wanted: object): Promise<void> {
  for (const table of ['decisions', 'usage_1m', 'usage_15m', 'usage_total_15m']) {
    // Rollups follow the raw rows within the same insert, not at the same moment.
    const isThere = async () => isDeepStrictEqual(await sums({ clickhouse }, table, where), wanted)
    await waitUntil(isThere, { deadlineMs: 5_000 })
    expect([table, await sums({ clickhouse }, table, where)]).toEqual([table, wanted])
  }
}

/** Decisions from the topic's beginning, once there are enough. */
async function decisionsInKafka(kafka: KafkaOptions, enough: (decisions: readonly DecisionRecordV1[]) => boolean) {
  const decisionsOf = (records: readonly { readonly value: Buffer | null }[]) =>
    records.flatMap(({ value }) => {
      const parsed = parseDecision(value ?? Buffer.alloc(0))
      return parsed.kind === 'decision' ? [parsed.decision] : []
    })
  return decisionsOf(await readTopic(kafka, topics.decisions, (records) => enough(decisionsOf(records))))
}

/** How often each id comes, in the order of ids. */
function timesOf(ids: readonly (readonly [id: string, times: number])[]): readonly (readonly [string, number])[] {
  const times = new Map<string, number>()
  for (const [id, more] of ids) times.set(id, (times.get(id) ?? 0) + more)
  return [...times].toSorted(([a], [b]) => (a < b ? -1 : 1))
}

/**
 * Of 1,000 requests over 8 connections exactly 100 are allowed, and Kafka, the raw table and every rollup count each of
 * them once.
 */
export async function expectHundredOfThousand({ ingress, demoKey, kafka, clickhouse }: Pipeline): Promise<void> {
  await untilEarlyInTheMinute()
  const answers = await request(ingress, 1_000, 8, demoKey)

  const statuses = Object.groupBy(answers, (answer) => String(answer.status))
  expect(Object.fromEntries(Object.entries(statuses).map(([status, list]) => [status, list?.length]))).toEqual({
    200: 100,
    429: 900,
  })
  for (const { headers, status } of answers) {
    expect(headers.get('weir-decision')).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/)
    expect(headers.get('ratelimit-policy')).toContain('"minute";q=100;w=60')
    expect(headers.get('ratelimit')).toMatch(/"minute";r=\d+;t=\d+/)
    expect(headers.get('content-type')).toBe(status === 429 ? 'application/problem+json' : 'application/json')
    if (status === 429) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  }
  // Denials from memory share the record of their second.
  const answered = timesOf(answers.map(({ headers }) => [headers.get('weir-decision') ?? '', 1]))

  await expectSums({ clickhouse }, "plan = 'free'", { decisions: 1_000, allowed: 100 })
  const isFree = ({ subject }: DecisionRecordV1) => subject === 'demo'
  const counted = (records: readonly DecisionRecordV1[]) => records.reduce((sum, { count }) => sum + count, 0)
  const records = await decisionsInKafka(kafka, (all) => counted(all.filter(isFree)) >= 1_000)
  const parsed = records.filter(isFree)
  expect(counted(parsed.filter(({ outcome }) => outcome === 'allow'))).toBe(100)
  expect(timesOf(parsed.map(({ id, count }) => [id, count]))).toEqual(answered)
}

/**
 * Of 25 requests against a quota of 20 a day, 20 are allowed; two alerts are raised, and the receiver verifies two
 * webhooks.
 */
export async function expectTwoAlerts({ ingress, receiver, demoSmallKey, kafka, clickhouse }: Pipeline): Promise<void> {
  const answers = await request(ingress, 25, 1, demoSmallKey)
  expect(answers.map(({ status }) => status)).toEqual([...Array(20).fill(200), ...Array(5).fill(429)])

  await expectSums({ clickhouse }, "plan = 'trial'", { decisions: 25, allowed: 20 })

  const deliveries = async () => {
    const answer = await fetch(`${receiver}/deliveries`)
    return (await answer.json()) as { id: string; verified: boolean; body: { data: { percent: number } } }[]
  }
  await waitUntil(async () => (await deliveries()).length >= 2, { deadlineMs: 10_000 })
  // Two deliveries may overtake each other.
  const received = (await deliveries()).toSorted((one, other) => one.body.data.percent - other.body.data.percent)
  expect(received.map(({ verified, body }) => [verified, body.data.percent])).toEqual([
    [true, 80],
    [true, 100],
  ])
  const alerts = await readTopic(kafka, topics.alerts, (records) => records.length >= 2)
  expect(alerts.map(({ headers }) => headers.ce_id).sort()).toEqual(received.map(({ id }) => id).sort())
  expect(alerts.map(({ headers }) => headers.ce_type)).toEqual(['weir.quota.reached', 'weir.quota.reached'])
}
