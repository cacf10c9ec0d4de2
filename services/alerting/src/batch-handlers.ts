import { setTimeout as pause } from 'node:timers/promises'
import { parseAlert } from '@weir/contracts/alert.v1.ts'
import { parseDelivery } from '@weir/contracts/delivery.v1.ts'
import type { RecordBatch } from '@weir/kafka/consume-batches.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Deliveries } from './deliver/open-deliveries.ts'
import { patiently } from './patiently.ts'
import type { Crossing } from './watch/crossings.ts'

type Handler = (batch: RecordBatch) => Promise<void>

const commitAll = ({ records, commit }: RecordBatch) => commit(String(BigInt(records.at(-1)?.offset ?? 0) + 1n))

/** What each of the consumers does with a batch: all of it, as often as it takes, and then the commit. */
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
    patiently(step, { heartbeat, pause: wait, log })

  /** What cannot be read is for whoever keeps the log: it becomes a dead letter there. */
  const alertsOf = ({ records }: RecordBatch) =>
    records.flatMap(({ value, headers }) => {
      const parsed = parseAlert(value, headers)
      return parsed.kind === 'alert' ? [parsed.alert] : []
    })

  /** The log of deliveries is read for what was asked for. */
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
      // 1. All jobs are in Redis. A crash before the commit enqueues them again, under the same ids.
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
