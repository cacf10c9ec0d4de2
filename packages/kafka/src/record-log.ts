/** What waits for Kafka. */
export interface Backlog {
  readonly records: number
  readonly bytes: number
  /** When the oldest waiting record was appended, in milliseconds since the epoch. */
  readonly oldestAppendMs: number | undefined
}

/** Since the process started. */
export interface RecordLogCounters {
  readonly appended: number
  /** Appends turned away because the bound was reached. */
  readonly refused: number
  /** Acknowledged by Kafka. */
  readonly sent: number
  /** Requests that Kafka did not acknowledge; each was, or is being, repeated. */
  readonly failedAttempts: number
}

/** Takes encoded records and brings them to Kafka in the order of each key, numbered without holes. */
export interface RecordLog {
  /**
   * Takes one record: compact JSON without the closing brace, to which `journal` and `seq` are added. Never waits. False when the
   * bound is reached: then nothing was taken.
   */
  append(key: string, openLine: string): boolean
  /**
   * Resolves once all that was appended before stands in the journal: to false if the disk did not take it in time. Nothing may be
   * answered before. All who ask in one turn of the event loop share one write and one promise.
   */
  written(): Promise<boolean>
  readonly backlog: Backlog
  readonly counters: RecordLogCounters
  /** Takes no more records and waits at most so long until Kafka has the rest; says how many it has not. */
  drain(deadlineMs: number): Promise<{ readonly lost: number }>
}
