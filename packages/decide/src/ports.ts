import type { RedisIdempotencyRecords } from '@weir/redis/idempotency-records.ts'
import type { createPauses } from '@weir/redis/pauses.ts'
import type { RedisSettlements } from '@weir/redis/settlements.ts'

/** A record of equal decisions of about a second, which grows while it is open. */
export interface CoalescedRecord {
  /** Counts so many more, or one. False once it is closed, or the log accepts nothing: then open another. */
  add(count?: number): boolean
  /** As the log's, of what was just added. */
  finallyWritten(): Promise<boolean>
}

/** Where decisions are recorded: the journal on this machine's disk. */
export interface DecisionLog {
  /**
   * Accepts one record, as JSON without the closing brace, or returns false when there is no space for it. `isReserved`
   * records may use space that others may not. The log itself counts decisions that it did not accept, or lost.
   */
  append(key: string, openLine: string, isReserved?: boolean): boolean
  /**
   * Opens a coalesced record, which counts nothing yet; undefined, and nothing counted, when there is no space. One of
   * admissions has `latest`, which says what stands after the count once it closes.
   */
  openCoalesced(
    key: string,
    beforeCount: string,
    afterCount: string,
    latest?: () => string,
  ): CoalescedRecord | undefined
  /**
   * Resolves once everything appended so far is written, or to false when the disk takes longer than 250 ms: then the
   * write may still complete. Nothing may be answered before.
   */
  writtenInTime(): Promise<boolean>
  /**
   * Resolves to the outcome of the record that was appended last, however late: whether it is written, or certain never
   * to be. To be called right after `append`. An answer must not wait for it.
   */
  finallyWritten(): Promise<boolean>
}

/** Where upstreams' answers are recorded. Nothing waits for the disk, and no count depends on it. */
export type OutcomeLog = Pick<DecisionLog, 'append'>

/**
 * Knows which admissions under idempotency keys have a record, for all processes that share a Redis. The marker of such
 * a key says that the admission was charged; the process that charged it may have died, or found its journal full,
 * before it recorded it. A repeat must then be recorded, or the admission would never be counted.
 */
export type IdempotencyRecords = Pick<RedisIdempotencyRecords, 'mark' | 'hold' | 'claim'>

/** Settles decisions that were made with a reservation: each once, however often it is asked. */
export type Settlements = Pick<RedisSettlements, 'settle' | 'confirmRecorded' | 'renew'>

/** Makes limits deny for a while whatever capacity they have, in every process. */
export type Pauses = ReturnType<typeof createPauses>
