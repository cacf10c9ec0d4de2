import { setTimeout as pause } from 'node:timers/promises'
import type { DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { RecordSender } from '@weir/kafka/send-records.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { RecordDeliveries } from '../deliver/ports.ts'

/** Rows wait so long for others to go with them. */
const gatherMs = 20
/** One send; with 2,048 attempts at a time there is never more than a few of them. */
const rowsPerSendMax = 500
const retryMaxMs = 5_000

/**
 * Keeps what became of attempts in Kafka, from where it comes to ClickHouse whether that is there now or not. While Kafka is away it waits:
 * a delivery counts as made when it is written down.
 */
export function createDeliveryRecorder(options: {
  readonly sender: RecordSender
  readonly stopping: AbortSignal
  readonly log: Logger
}): RecordDeliveries {
  const { sender, stopping, log } = options
  let waiting: DeliveryV1[] = []
  let next: Promise<void> | undefined

  const sendAll = async (rows: readonly DeliveryV1[]) => {
    for (let at = 0; at < rows.length; at += rowsPerSendMax) {
      const some = rows.slice(at, at + rowsPerSendMax)
      const records = some.map((row) => ({ key: row.alert_id, value: JSON.stringify(row) }))
      for (let pauseMs = 200; ; pauseMs = Math.min(pauseMs * 2, retryMaxMs)) {
        try {
          await sender.send(topics.deliveries, records)
          break
        } catch (error) {
          log.warn({ err: error, rows: some.length }, 'deliveries not recorded yet, trying again')
          await pause(pauseMs, undefined, { signal: stopping })
        }
      }
    }
  }

  const gather = async () => {
    await pause(gatherMs)
    const rows = waiting
    waiting = []
    next = undefined
    await sendAll(rows)
  }

  return (deliveries) => {
    // One by one: a call has room for some hundred thousand arguments only.
    for (const delivery of deliveries) waiting.push(delivery)
    next ??= gather()
    return next
  }
}
