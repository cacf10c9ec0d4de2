import { findTraces, type TraceContext } from '@weir/contracts/trace-context.ts'
import type { QueuedRecord } from './partition-queue.ts'

/** Of a batch, at most. A process traces 100 a second; an adopted journal may have more. */
const tracedMax = 256

/** A batch that Kafka has, with those of its decisions that are traced. Times are milliseconds since the epoch. */
export interface TracedBatch {
  readonly topic: string
  readonly partition: number
  /** Of the batch. */
  readonly records: number
  /** The journal is a dead process's. */
  readonly isAdopted: boolean
  readonly acknowledgedMs: number
  readonly traced: readonly { readonly trace: TraceContext; readonly appendedMs: number }[]
}

/** Returns the traced decisions among the records of a batch. */
export function findTraced(records: readonly QueuedRecord[]): TracedBatch['traced'] {
  const traced: TracedBatch['traced'][number][] = []
  for (const { value, appendedMs } of records) {
    if (traced.length >= tracedMax) break
    const [found] = findTraces(value, 0, value.length)
    if (found !== undefined) traced.push({ trace: found.trace, appendedMs })
  }
  return traced
}
