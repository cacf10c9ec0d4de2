import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { parseAlert } from '@weir/contracts/alert.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { readTopic } from '../servers/read-topic.ts'
import { quotaSize } from './failure-policy.ts'
import { openKafkaOffsets } from './kafka-offsets.ts'
import type { Stack } from './stack.ts'

/** Deliveries are tried again after 5 s at first (services/alerting/src/deliver/retry-schedule.ts). */
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

/** What each alert of these subjects in the topic is for, by its id, with how many records of them there are. */
export async function raisedAlerts(options: KafkaOptions, subjects: readonly string[]) {
  const kafka = await openKafkaOffsets(options)
  const ends = await kafka.ends(topics.alerts)
  await kafka.close()
  const all = [...ends.values()].reduce((sum, end) => sum + Number(end), 0)
  const records = await readTopic(options, topics.alerts, ({ length }) => length >= all)
  const ours = new Set(subjects)
  const byId = new Map<string, string>()
  let count = 0
  for (const { value, headers } of records) {
    const parsed = parseAlert(value, headers)
    if (parsed.kind !== 'alert') throw new Error(`an alert cannot be read: ${String(value)}`)
    const { alert } = parsed
    if (alert.type !== 'weir.quota.reached' || !ours.has(alert.subject)) continue
    count += 1
    byId.set(alert.id, `${alert.subject} ${alert.data.percent}`)
  }
  return { byId, records: count }
}

interface Delivery {
  readonly id: string
  readonly verified: boolean
}

/** Counts the alerts of these subjects, once all that were raised are delivered or the deadline has passed. */
export async function countAlerts(stack: Stack, subjects: readonly string[]): Promise<AlertCount> {
  const due = (await dueAlerts(stack, subjects)).sort()
  const count = async (): Promise<AlertCount> => {
    const { byId: raised } = await raisedAlerts(stack.kafka, subjects)
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
