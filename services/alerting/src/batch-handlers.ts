import { parseAlert } from '@weir/contracts/alert.v1.ts'
import { parseDelivery } from '@weir/contracts/delivery.v1.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { RecordBatch } from '@weir/kafka/consume-batches.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Deliveries } from './deliver/open-deliveries.ts'
import { repeatUntilDone } from './repeat.ts'
import type { Crossing } from './types.ts'

const commitAll = ({ records, commit }: RecordBatch) => commit(String(BigInt(records.at(-1)?.offset ?? 0) + 1n))

/** Kafka's own faults: the consumer handles them, and a lost partition must end the wait. */
const isFinal = (error: unknown) =>
  (error instanceof WeirError && error.code !== 'REDIS_UNAVAILABLE') || error instanceof TypeError

/** Returns what each consumer does with a batch: the whole step, repeated until it succeeds, and then the commit. */
export function createBatchHandlers(options: {
  readonly watch: (records: RecordBatch['records']) => readonly Crossing[]
  readonly raise: (crossings: readonly Crossing[]) => Promise<void>
  readonly deliveries: Pick<Deliveries, 'queueAlerts' | 'requeue'>
  readonly keepRecords: (batch: RecordBatch) => Promise<void>
  readonly crash: CrashPoint
  readonly stopping: AbortSignal
  readonly log: Logger
}) {
  const { watch, raise, deliveries, keepRecords, crash, stopping, log } = options
  /** Sends a heartbeat after each pause, so that the partition stays with this process. */
  const repeat = (step: () => Promise<void>, { heartbeat: afterPause }: RecordBatch) =>
    repeatUntilDone(step, { what: 'step failed', isFinal, afterPause, stopping, log })

  return {
    async onDecisions(batch: RecordBatch): Promise<void> {
      const crossings = watch(batch.records)
      await repeat(() => raise(crossings), batch)
      await commitAll(batch)
      crash('commit')
    },
    async onAlerts(batch: RecordBatch): Promise<void> {
      // Unreadable records are skipped: the consumer of the log makes them dead letters.
      const alerts = batch.records.flatMap(({ value, headers }) => {
        const parsed = parseAlert(value, headers)
        return parsed.kind === 'alert' ? [parsed.alert] : []
      })
      await repeat(() => deliveries.queueAlerts(alerts), batch)
      // All jobs are in Redis. After a crash before the commit they are queued again, under the same ids.
      crash('enqueue')
      await commitAll(batch)
      crash('enqueue_commit')
    },
    /** Reads the requests for redelivery out of the topic of deliveries. */
    async onRequests(batch: RecordBatch): Promise<void> {
      const found = batch.records.flatMap(({ value }) => {
        const parsed = parseDelivery(value)
        return parsed.kind === 'delivery' ? [parsed.delivery] : []
      })
      await repeat(() => deliveries.requeue(found), batch)
      await commitAll(batch)
    },
    async onLog(batch: RecordBatch): Promise<void> {
      await repeat(() => keepRecords(batch), batch)
      await commitAll(batch)
    },
  }
}
