import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { parseAlert } from '@weir/contracts/alert.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { kafkaOptions } from '../servers/kafka-topics.ts'
import { readTopic } from '../servers/read-topic.ts'
import { quotaSize } from './failure-policy.ts'
import { openKafkaOffsets } from './kafka-offsets.ts'
import type { Stack } from './stack.ts'

/** Deliveries are tried again after 5 s at first (services/alerting/src/dispatch.ts). */
const deliveredDeadlineMs = 60_000

/** `subject percent`, one line per alert. */
export interface AlertCount {
  /** By what the recorded decisions reached. */
  readonly due: readonly string[]
  /** Different ids in the topic, by what they are for. */
  readonly raised: readonly string[]
  /** Verified by the receiver, every id once. */
  readonly delivered: readonly string[]
}

/** The thresholds that the recorded decisions of these subjects reached. */
async function dueAlerts(stack: Stack, subjects: readonly string[]): Promise<string[]> {
  const client = connectClickhouse(stack.addresses.clickhouse, 'failure-suite')
  const list = subjects.map((subject) => `'${subject}'`).join(', ')
  const query = `SELECT subject, max(arrayMax(limits.used)) AS used FROM weir.decisions
    WHERE subject IN (${list}) AND length(limits) > 0 GROUP BY subject`
  try {
    const rows = await (await client.query({ query, format: 'JSONEachRow' })).json<{ subject: string; used: string }>()
    return rows.flatMap(({ subject, used }) =>
      [80, 100]
        .filter((percent) => Number(used) * 100 >= quotaSize * percent)
        .map((percent) => `${subject} ${percent}`),
    )
  } finally {
    await client.close()
  }
}

async function raisedAlerts(stack: Stack, subjects: readonly string[]): Promise<Map<string, string>> {
  const kafka = await openKafkaOffsets(stack.addresses.kafka)
  const ends = await kafka.ends(topics.alerts)
  await kafka.close()
  const all = [...ends.values()].reduce((sum, end) => sum + Number(end), 0)
  const records = await readTopic(kafkaOptions(stack.addresses.kafka), topics.alerts, ({ length }) => length >= all)
  const byId = new Map<string, string>()
  for (const { value, headers } of records) {
    const parsed = parseAlert(value, headers)
    if (parsed.kind !== 'alert') throw new Error(`an alert cannot be read: ${String(value)}`)
    const { alert } = parsed
    if (alert.type !== 'weir.quota.reached' || !subjects.includes(alert.subject)) continue
    byId.set(alert.id, `${alert.subject} ${alert.data.percent}`)
  }
  return byId
}

interface Delivery {
  readonly id: string
  readonly verified: boolean
}

/** Counts the alerts of these subjects, once all that were raised are delivered or the deadline has passed. */
export async function countAlerts(stack: Stack, subjects: readonly string[]): Promise<AlertCount> {
  const due = (await dueAlerts(stack, subjects)).sort()
  const count = async (): Promise<AlertCount> => {
    const raised = await raisedAlerts(stack, subjects)
    const answer = await fetch(`http://127.0.0.1:${stack.ports.receiver}/deliveries`)
    const deliveries = (await answer.json()) as Delivery[]
    const ids = new Set(deliveries.filter(({ verified }) => verified).map(({ id }) => id))
    const delivered = [...raised].flatMap(([id, what]) => (ids.has(id) ? [what] : []))
    return { due, raised: [...raised.values()].sort(), delivered: delivered.sort() }
  }
  let counted = await count()
  await waitUntil(
    async () => {
      counted = await count()
      return counted.delivered.length >= due.length
    },
    { deadlineMs: deliveredDeadlineMs, everyMs: 1_000 },
  )
  return counted
}
