import { setTimeout as pause } from 'node:timers/promises'
import type { DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { RecordSender } from '@weir/kafka/send-records.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { repeatUntilDone } from '../repeat.ts'
import type { RecordDeliveries } from '../types.ts'

/** Rows wait up to this long for others to be sent with them. */
const gatherMs = 20
/** Rows of one send; with 2,048 concurrent attempts there are never more than a few sends. */
const rowsPerSendMax = 500

/** Logs an attempt with the reason of a failure, and never what was sent. */
function logDelivery({ alert_id, endpoint, attempt, outcome, status, ms, error }: DeliveryV1, log: Logger): void {
  const what = { alert_id, endpoint, attempt, outcome, status, ms }
  if (outcome === 'delivered') log.info(what, 'alert delivered')
  else if (outcome === 'silenced') log.info({ ...what, error }, 'alert silenced')
  else if (outcome !== 'queued') log.warn({ ...what, error }, 'alert not delivered')
}

/**
 * Returns the function that logs the outcomes of attempts and records them in Kafka, from where they reach ClickHouse
 * once it is available. The function resolves when Kafka has the rows, and waits while Kafka is unavailable: a delivery
 * counts as made when it is recorded.
 */
export function createDeliveryRecorder(options: {
  readonly sender: RecordSender
  readonly stopping: AbortSignal
  readonly log: Logger
}): RecordDeliveries {
  const { sender, stopping, log } = options
  let waiting: DeliveryV1[] = []
  let next: Promise<void> | undefined

  const gather = async () => {
    await pause(gatherMs)
    const rows = waiting
    waiting = []
    next = undefined
    for (let at = 0; at < rows.length; at += rowsPerSendMax) {
      const some = rows.slice(at, at + rowsPerSendMax)
      const records = some.map((row) => ({ key: row.alert_id, value: JSON.stringify(row) }))
      const what = 'deliveries not recorded yet'
      await repeatUntilDone(() => sender.send(topics.deliveries, records), { what, stopping, log })
    }
  }

  return (deliveries) => {
    // One by one: a call accepts at most some hundred thousand arguments.
    for (const delivery of deliveries) {
      logDelivery(delivery, log)
      waiting.push(delivery)
    }
    next ??= gather()
    return next
  }
}
