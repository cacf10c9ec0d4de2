/** Equal records of about a second, written as one with their number in it. */
export interface OpenSum {
  /**
   * Counts one more, of which `written()` tells as of any record. False when the sum has been closed, or the journal
   * took nothing: then the caller opens another.
   */
  add(): boolean
}

/** Takes encoded records and brings them to Kafka in the order of each key, numbered without holes. */
export interface RecordLog {
  /**
   * Takes one record: compact JSON without the closing brace, to which `journal` and `seq` are added. Never waits.
   * False when the bound is reached, or the disk does not write: then nothing was taken. `isReserved` records (of
   * allowed decisions) have the last fifth of the bound for themselves. Decisions that were not taken, and those that
   * were and never came to stand in the journal, are counted in its gap page.
   */
  append(key: string, openLine: string, isReserved?: boolean): boolean
  /**
   * Begins a sum of equal records, which counts nothing yet: the finished line is `beforeCount`, the number added up,
   * `afterCount`, then as with `append`. It closes by itself after a second, and then takes its number in its
   * partition; what was written of it survives a kill. Undefined where there is no room for it; that counts nothing, so
   * `append` is to be asked next.
   */
  openSum(key: string, beforeCount: string, afterCount: string): OpenSum | undefined
  /**
   * Resolves once all that was appended before stands in the journal: to false if the disk did not take it in time; a
   * stalled one may take it later nevertheless. Nothing may be answered before. All who ask in one turn of the event
   * loop share one write and one promise.
   */
  written(): Promise<boolean>
  /**
   * To be asked right after `append` said true: what the end of that record is. True once it stands in the journal;
   * false once it is certain that it never will. Where `written` said false both may still come, and it may take as
   * long as the disk does, so that nothing may be answered by it; only who would give the same record again, or correct
   * it, has to know.
   */
  landed(): Promise<boolean>
}
