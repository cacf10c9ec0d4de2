import { setTimeout as pause } from 'node:timers/promises'
import { parseAlert } from '@weir/contracts/alert.v1.ts'
import { parseDelivery } from '@weir/contracts/delivery.v1.ts'
import type { RecordBatch } from '@weir/kafka/consume-batches.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Deliveries } from './deliver/open-deliveries.ts'
import { retryWithHeartbeats } from './retry-with-heartbeats.ts'
import type { Crossing } from './watch/crossings.ts'

type Handler = (batch: RecordBatch) => Promise<void>

const commitAll = ({ records, commit }: RecordBatch) => commit(String(BigInt(records.at(-1)?.offset ?? 0) + 1n))

/** Returns what each consumer does with a batch: the whole step, repeated until it succeeds, and then the commit. */
export function createBatchHandlers(options: {
  readonly watch: (records: RecordBatch['records']) => readonly Crossing[]
  readonly raise: (crossings: readonly Crossing[]) => Promise<void>
  readonly deliveries: Pick<Deliveries, 'queue' | 'requeue'>
  readonly keepRecords: (batch: RecordBatch) => Promise<void>
  readonly crash: CrashPoint
  readonly stopping: AbortSignal
  readonly log: Logger
}): {
  readonly onDecisions: Handler
  readonly onAlerts: Handler
  readonly onRequests: Handler
  readonly onLog: Handler
} {
  const { watch, raise, deliveries, keepRecords, crash, stopping, log } = options
  const wait = (ms: number) => pause(ms, undefined, { signal: stopping })
  const repeat = (step: () => Promise<void>, { heartbeat }: RecordBatch) =>
    retryWithHeartbeats(step, { heartbeat, pause: wait, log })

  /** Skips unreadable records: the consumer of the log makes them dead letters. */
  const alertsOf = ({ records }: RecordBatch) =>
    records.flatMap(({ value, headers }) => {
      const parsed = parseAlert(value, headers)
      return parsed.kind === 'alert' ? [parsed.alert] : []
    })

  /** Reads the requests for redelivery out of the topic of deliveries. */
  const requestsOf = ({ records }: RecordBatch) =>
    records.flatMap(({ value }) => {
      const parsed = parseDelivery(value)
      return parsed.kind === 'delivery' ? [parsed.delivery] : []
    })

  return {
    async onDecisions(batch) {
      const crossings = watch(batch.records)
      await repeat(() => raise(crossings), batch)
      await commitAll(batch)
      crash('commit')
    },
    async onAlerts(batch) {
      const alerts = alertsOf(batch)
      await repeat(() => deliveries.queue(alerts), batch)
      // All jobs are in Redis. After a crash before the commit they are queued again, under the same ids.
      crash('enqueue')
      await commitAll(batch)
      crash('enqueue_commit')
    },
    async onRequests(batch) {
      await repeat(() => deliveries.requeue(requestsOf(batch)), batch)
      await commitAll(batch)
    },
    async onLog(batch) {
      await repeat(() => keepRecords(batch), batch)
      await commitAll(batch)
    },
  }
}
