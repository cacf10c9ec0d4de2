import { WeirError } from '@weir/core/errors.ts'
import type { OffsetCommit } from '@weir/kafka/consume-batches.ts'
import type { RecordBatch } from '@weir/kafka/record-batch.ts'
import { type BackoffBounds, backoffMs } from '@weir/runtime/backoff.ts'

/** One assignment of a partition to this process: sends heartbeats and commits. A batch is one, and so is a start. */
export type PartitionOwnership = Pick<RecordBatch, 'heartbeat' | 'commitAll' | 'isFenced'>

/** Waits; a test returns immediately. Rejects when the process stops. */
export type Pause = (ms: number) => Promise<void>

/** How work is kept from costing the group membership. */
export interface HeartbeatOptions {
  readonly heartbeatIntervalMs: number
  readonly pause: Pause
}

/** Between attempts while ClickHouse is unavailable: no partition should wait longer than 5 s once it is back. */
const retries: BackoffBounds = { firstMs: 200, maxMs: 5_000 }

/** Ignores that Kafka does not answer a heartbeat: whether the partition is still ours, the next commit shows. */
async function heartbeat(ownership: PartitionOwnership): Promise<void> {
  try {
    await ownership.heartbeat()
  } catch (error) {
    if (error instanceof WeirError && error.retryable && !ownership.isFenced()) return
    throw error
  }
}

/**
 * Runs `work` and sends a heartbeat every `heartbeatIntervalMs` until it settles. The signal aborts when the partition
 * is lost or the process stops.
 *
 * @returns the result of `work`.
 * @throws `PARTITION_LOST`, or the error of a heartbeat, once the partition is lost; what `work` or `pause` throws.
 */
export async function withHeartbeats<T>(
  ownership: PartitionOwnership,
  { heartbeatIntervalMs, pause }: HeartbeatOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = new AbortController()
  let isDone = false
  const running = work(abort.signal).finally(() => {
    isDone = true
  })
  // The race or the last line reports its rejection, not the process.
  running.catch(() => undefined)
  try {
    for (;;) {
      await Promise.race([running, pause(heartbeatIntervalMs)])
      if (isDone) return await running
      await heartbeat(ownership)
    }
  } catch (error) {
    abort.abort(error)
    throw error
  }
}

/** Returns what ends work on a lost partition. ClickHouse's own error would end the whole consumer instead. */
const asLost = (thrown: unknown): WeirError =>
  thrown instanceof WeirError
    ? thrown
    : new WeirError('PARTITION_LOST', 'the partition was reassigned during a call to ClickHouse', thrown)

/**
 * Runs `attempt` until it succeeds, with growing pauses and heartbeats between attempts. `onFailure` is called before
 * each pause.
 *
 * @throws `PARTITION_LOST`, or the heartbeat's own error, once the partition is lost; what `pause` rejects with.
 */
export async function retryWhileOwned<T>(
  ownership: PartitionOwnership,
  { heartbeatIntervalMs, pause }: HeartbeatOptions,
  attempt: (failures: number) => Promise<T>,
  onFailure: (error: Error, failures: number, pauseMs: number) => void,
): Promise<T> {
  for (let failures = 0; ; ) {
    try {
      return await attempt(failures)
    } catch (thrown) {
      // A heartbeat during the call may have said so: then nothing of ClickHouse's is to be retried.
      const isLost = thrown instanceof WeirError && thrown.code === 'PARTITION_LOST'
      if (isLost || ownership.isFenced()) throw asLost(thrown)
      // Rejects when the process stops, which ends the call: that is no failure.
      await pause(0)
      failures += 1
      const pauseMs = backoffMs(failures, retries)
      onFailure(thrown instanceof Error ? thrown : new Error(String(thrown)), failures, pauseMs)
      for (let left = pauseMs; left > 0; left -= heartbeatIntervalMs) {
        await pause(Math.min(left, heartbeatIntervalMs))
        await heartbeat(ownership)
      }
    }
  }
}
