import { waitUntil } from '@weir/runtime/wait-until.ts'
import { Webhook } from 'standardwebhooks'
import { raisedAlerts } from '../failure/alerts.ts'
import { kafkaOptions } from '../servers/kafka-topics.ts'
import { type AlertingStack, type Received, webhookSecret } from './open-alerting.ts'

/** What stands in the topic and what came to `/ops`, of some subjects. */
export interface AlertLedger {
  /** `subject percent` of each id, sorted: what was raised under two ids stands there twice. */
  readonly raised: readonly string[]
  /** The same of the ids that arrived, whole and signed. */
  readonly delivered: readonly string[]
  /** Records beyond the first of their id. */
  readonly raisedAgain: number
  readonly deliveredAgain: number
}

/** Once, and soon: a signature counts for five minutes. */
const verified = new WeakSet<Received>()

function verifyOnce(one: Received): void {
  if (verified.has(one)) return
  const signed = Object.fromEntries(Object.entries(one.headers).map(([name, value]) => [name, String(value)]))
  new Webhook(webhookSecret).verify(one.body, signed)
  verified.add(one)
}

/** Ids of what arrived for these subjects, each as often as it did. Throws if a signature is wrong. */
function arrivals(stack: AlertingStack, subjects: ReadonlySet<string>): string[] {
  return stack.received.flatMap((one) => {
    const { path, headers, body } = one
    const { type, data } = JSON.parse(body)
    if (path !== '/ops' || type !== 'weir.quota.reached' || !subjects.has(data.subject)) return []
    verifyOnce(one)
    return [String(headers['webhook-id'])]
  })
}

async function readLedger(stack: AlertingStack, subjects: readonly string[]): Promise<AlertLedger> {
  const { byId, records } = await raisedAlerts(kafkaOptions(stack.kafka.address), subjects)
  const arrived = arrivals(stack, new Set(subjects))
  const ids = new Set(arrived)
  return {
    raised: [...byId.values()].sort(),
    delivered: [...ids].map((id) => byId.get(id) ?? `nothing in the topic: ${id}`).sort(),
    raisedAgain: records - byId.size,
    deliveredAgain: arrived.length - ids.size,
  }
}

/** The ledger as soon as so many different alerts were delivered, or when the deadline has passed. */
export async function settledLedger(
  stack: AlertingStack,
  subjects: readonly string[],
  wanted: { readonly alerts: number; readonly deadlineMs: number },
): Promise<AlertLedger> {
  const all = new Set(subjects)
  const isThere = () => new Set(arrivals(stack, all)).size >= wanted.alerts
  await waitUntil(isThere, { deadlineMs: wanted.deadlineMs, everyMs: 250 })
  return readLedger(stack, subjects)
}
