import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { type DecisionRecordV1, parseDecision } from '@weir/contracts/decision.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readTopic } from '../support/servers/read-topic.ts'
import { type RunningWeir, weirUp } from '../support/weir-up.ts'

let weir: RunningWeir
beforeAll(async () => {
  weir = await weirUp()
})
afterAll(() => weir?.close())

/** GETs the demo API through the ingress so often, over so many connections at a time; the statuses and headers. */
async function request(count: number, connections: number, key: string | null): Promise<Response[]> {
  const answers: Response[] = []
  let left = count
  const one = async () => {
    while (left-- > 0) {
      const answer = await fetch(`${weir.line.ingress}/hello`, { headers: { 'x-api-key': key ?? '' } })
      await answer.arrayBuffer()
      answers.push(answer)
    }
  }
  await Promise.all(Array.from({ length: connections }, one))
  return answers
}

/** Begins in the first half of an aligned minute, so that the requests fall into one window. */
const untilEarlyInTheMinute = () => waitUntil(() => Date.now() % 60_000 < 30_000, { deadlineMs: 35_000, everyMs: 250 })

/** A topic from its beginning, once it holds so many records. */
const topic = (name: string, count: number) => {
  const kafka = { brokers: [weir.line.kafka], clientId: 'smoke', log: createLogger('smoke', 'silent') }
  return readTopic(kafka, name, (records) => records.length >= count)
}

const sums = async (table: string, where: string) => {
  const client = connectClickhouse(weir.line.clickhouse, 'smoke')
  const answer = await client.query({
    query: `SELECT toUInt32(sum(count)) AS decisions, toUInt32(sumIf(count, outcome = 'allow')) AS allowed FROM weir.${table} WHERE ${where}`,
    format: 'JSONEachRow',
  })
  const [row] = await answer.json<{ decisions: number; allowed: number }>()
  await client.close()
  return row
}

/** Decisions from the topic's beginning, once there are enough. */
async function decisionsInKafka(enough: (decisions: readonly DecisionRecordV1[]) => boolean) {
  const kafka = { brokers: [weir.line.kafka], clientId: 'smoke', log: createLogger('smoke', 'silent') }
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

describe('the whole pipeline', () => {
  it('admits exactly 100 of 1,000 requests from 8 connections, and counts every one of them in Kafka, raw and rollups', async () => {
    await untilEarlyInTheMinute()
    const answers = await request(1_000, 8, weir.line.demoKey)

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

    const byPlan = "plan = 'free'"
    for (const table of ['decisions', 'usage_1m', 'usage_15m', 'usage_total_15m']) {
      // Rollups follow the raw rows within the same insert, not at the same moment.
      await waitUntil(async () => (await sums(table, byPlan))?.decisions === 1_000, { deadlineMs: 5_000 })
      expect([table, await sums(table, byPlan)]).toEqual([table, { decisions: 1_000, allowed: 100 }])
    }
    const isFree = ({ subject }: DecisionRecordV1) => subject === 'demo'
    const counted = (records: readonly DecisionRecordV1[]) => records.reduce((sum, { count }) => sum + count, 0)
    const records = await decisionsInKafka((all) => counted(all.filter(isFree)) >= 1_000)
    const parsed = records.filter(isFree)
    expect(counted(parsed.filter(({ outcome }) => outcome === 'allow'))).toBe(100)
    expect(timesOf(parsed.map(({ id, count }) => [id, count]))).toEqual(answered)
  })

  it('raises exactly two alerts on a quota of 20 a day, and the receiver verifies exactly two webhooks', async () => {
    const answers = await request(25, 1, weir.line.demoSmallKey)
    expect(answers.map(({ status }) => status)).toEqual([...Array(20).fill(200), ...Array(5).fill(429)])

    const deliveries = async () => {
      const answer = await fetch(`${weir.line.receiver}/deliveries`)
      return (await answer.json()) as { id: string; verified: boolean; body: { data: { percent: number } } }[]
    }
    await waitUntil(async () => (await deliveries()).length >= 2, { deadlineMs: 10_000 })
    // Two deliveries may overtake each other.
    const received = (await deliveries()).toSorted((one, other) => one.body.data.percent - other.body.data.percent)
    expect(received.map(({ verified, body }) => [verified, body.data.percent])).toEqual([
      [true, 80],
      [true, 100],
    ])
    const alerts = await topic(topics.alerts, 2)
    expect(alerts.map(({ headers }) => headers.ce_id).sort()).toEqual(received.map(({ id }) => id).sort())
    expect(alerts.map(({ headers }) => headers.ce_type)).toEqual(['weir.quota.reached', 'weir.quota.reached'])
  })

  it('answers who used what from the rollups', async () => {
    await request(1, 1, weir.line.demoSmallKey)
    const url = `${weir.line.console}/v1/usage?subject=demo-small&by=outcome&step=total`
    const headers = { authorization: `Bearer ${weir.line.adminToken}` }
    const rows = await waitUntil(
      async () => {
        const answer = (await (await fetch(url, { headers })).json()) as { rows: { outcome: string; count: string }[] }
        return answer.rows[1]?.count === '6' && answer.rows
      },
      { deadlineMs: 5_000 },
    )
    expect(rows).toEqual([
      expect.objectContaining({ outcome: 'allow', count: '20', cost: '20' }),
      expect.objectContaining({ outcome: 'deny', count: '6', cost: '0' }),
    ])
    expect((await fetch(url)).status).toBe(401)
  })

  it('records a request without a valid key too, and tells nothing but to bring one', async () => {
    const answer = await fetch(`${weir.line.ingress}/hello`)
    expect(answer.status).toBe(401)
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    expect(answer.headers.get('ratelimit')).toBe('"unauthenticated";r=0')
    const seen = await waitUntil(
      async () => (await sums('decisions', "subject = '_unauthenticated'"))?.decisions === 1,
      {
        deadlineMs: 5_000,
      },
    )
    expect(seen).toBe(true)
  })
})
