/**
 * What every error code means for the person who reads it. Each has a row in docs/errors.md; test/repo holds the two
 * together.
 */
export interface ErrorFacts {
  /** Whether the same attempt may succeed later without a change by a person. */
  readonly retryable: boolean
}

export const errorFacts = {
  /** Environment or flags are wrong; the message lists every problem. */
  CONFIG_INVALID: { retryable: false },
  /** weir.yaml is wrong; the message lists every problem with file and line. */
  POLICY_INVALID: { retryable: false },
  /** What is to be imported cannot be read as what it should be; the message lists every problem with file and line. */
  IMPORT_REFUSED: { retryable: false },
  /** Redis does not answer a command that needs it. */
  REDIS_UNAVAILABLE: { retryable: true },
  /** ClickHouse does not answer a command that needs it. */
  CLICKHOUSE_UNAVAILABLE: { retryable: true },
  /** The console does not answer a command that needs it, or cannot do it now. */
  CONSOLE_UNAVAILABLE: { retryable: true },
  /** The console refuses a command: token, scope, name, or it is so already. */
  CONSOLE_REFUSED: { retryable: false },
  /** Another migrator holds the lock in ClickHouse. */
  MIGRATION_LOCKED: { retryable: true },
  /** A migration file differs from what was applied under its number. */
  MIGRATION_CHANGED: { retryable: false },
  /** `weir up` cannot make or write its data directory. */
  DATA_DIR_UNUSABLE: { retryable: false },
  /** Another `weir up` works on the data directory. */
  DATA_DIR_IN_USE: { retryable: false },
  /** A part of `weir up` ended or stayed silent while starting; the message ends with its log. */
  PART_NOT_STARTED: { retryable: false },
  /** A port that `weir up` needs is taken. */
  PORT_IN_USE: { retryable: false },
  /** A program that `weir up` or the tests need is not installed. */
  PROGRAM_MISSING: { retryable: false },
  /** Kafka did not answer, or not in time; what was sent may or may not be stored. */
  KAFKA_UNAVAILABLE: { retryable: true },
  /** Kafka does not let us in, or a right is missing; the message names the variable or the right. */
  KAFKA_DENIED: { retryable: true },
  /** Kafka refuses this request for good: no such version, too large. */
  KAFKA_REFUSED: { retryable: false },
  /** The partition belongs to another member or generation of the group by now, which reads it again. */
  PARTITION_LOST: { retryable: false },
  /** A partition is not read on until a person has looked: going on would lose or repeat something. */
  PARTITION_STOPPED: { retryable: false },
  /** A dead letter cannot be replayed: it was already, or what it holds is no record. */
  REPLAY_REFUSED: { retryable: false },
  /** `weir metering seek` was given an offset that the log does not have. */
  SEEK_INVALID: { retryable: false },
  /** The journal's directory cannot be made or written, or its disk does not outlive the process. */
  JOURNAL_UNUSABLE: { retryable: false },
} as const satisfies Record<string, ErrorFacts>

export type ErrorCode = keyof typeof errorFacts

/**
 * An operating fault: what was tried, with which id, and what to do. Expected outcomes are values, bugs are
 * assertions.
 */
export class WeirError extends Error {
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'WeirError'
    this.code = code
  }

  get retryable(): boolean {
    return errorFacts[this.code].retryable
  }
}
