import { setTimeout as pause } from 'node:timers/promises'
import type { DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { RecordSender } from '@weir/kafka/send-records.ts'
import { backoffMs } from '@weir/runtime/backoff.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { RecordDeliveries } from '../deliver/ports.ts'

/** Rows wait up to this long for others to be sent with them. */
const gatherMs = 20
/** Rows of one send; with 2,048 concurrent attempts there are never more than a few sends. */
const rowsPerSendMax = 500
/** Pauses between attempts while Kafka is unavailable. */
const pauses = { firstMs: 200, maxMs: 5_000 }

/**
 * Returns the function that records the outcomes of attempts in Kafka, from where they reach ClickHouse once it is
 * available. The function resolves when Kafka has the rows, and waits while Kafka is unavailable: a delivery counts as
 * made when it is recorded.
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
      for (let failures = 1; ; failures += 1) {
        try {
          await sender.send(topics.deliveries, records)
          break
        } catch (error) {
          log.warn({ err: error, rows: some.length }, 'deliveries not recorded yet, trying again')
          await pause(backoffMs(failures, pauses), undefined, { signal: stopping })
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
    // One by one: a call takes at most some hundred thousand arguments.
    for (const delivery of deliveries) waiting.push(delivery)
    next ??= gather()
    return next
  }
}
