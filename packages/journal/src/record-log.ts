/** Equal records of about a second, written as one with their count in it. */
export interface CoalescedRecord {
  /** Counts so many more, or one. False once it is closed, or the journal accepts nothing: then open another. */
  add(count?: number): boolean
  /** As the log's, of what was just added. */
  finallyWritten(): Promise<boolean>
}

/** Takes encoded records and brings them to Kafka in the order of each key, numbered without holes. */
export interface RecordLog {
  /**
   * Accepts one record: compact JSON without the closing brace, to which `journal` and `seq` are added. Never waits.
   * False when the bound is reached, or the disk does not write: then nothing was accepted. The last fifth of the bound
   * is for `isReserved` records (of allowed decisions). The gap file counts decisions that were not accepted, or lost.
   */
  append(key: string, openLine: string, isReserved?: boolean): boolean
  /**
   * Opens a coalesced record, which counts nothing yet: its line is `beforeCount`, the count, `afterCount`, then as
   * with `append`. It closes by itself after a second, and takes its number then; what was written of it survives a
   * kill. Undefined when there is no space for it; that counts nothing, so the caller uses `append` next.
   *
   * `latest` is given for allowed decisions: what stands behind the count by now. It is asked for when the record
   * closes; one that a kill leaves open has `afterCount`.
   */
  openCoalesced(
    key: string,
    beforeCount: string,
    afterCount: string,
    latest?: () => string,
  ): CoalescedRecord | undefined
  /**
   * Resolves once all that was appended before is in the journal: to false if the disk took longer than 250 ms; a
   * stalled disk may still write it later. Nothing may be answered before. All callers in one turn of the event loop
   * share one write and one promise.
   */
  writtenInTime(): Promise<boolean>
  /**
   * Resolves to the final outcome of the record just appended; to be called right after an `append` that returned true.
   * True once it is in the journal; false once it is certain that it never will be. It has no deadline: after
   * `writtenInTime()` resolved to false, either is possible for as long as the disk stalls. No answer may wait for it;
   * it is for callers that would append the same record again, or correct it.
   */
  finallyWritten(): Promise<boolean>
}
