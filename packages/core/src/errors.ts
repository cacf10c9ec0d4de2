/**
 * What every error code means for the person who reads it. Each has a row in docs/errors.md; test/repo holds the two
 * together.
 */
export interface ErrorFacts {
  /** Whether the same attempt may succeed later without a change by a person. */
  readonly retryable: boolean
}

/** The codes; docs/errors.md says what each means and how to fix it. */
export const errorFacts = {
  CONFIG_INVALID: { retryable: false },
  COMMAND_INVALID: { retryable: false },
  POLICY_INVALID: { retryable: false },
  IMPORT_REFUSED: { retryable: false },
  REDIS_UNAVAILABLE: { retryable: true },
  CLICKHOUSE_UNAVAILABLE: { retryable: true },
  CONSOLE_UNAVAILABLE: { retryable: true },
  CONSOLE_REFUSED: { retryable: false },
  TARGET_UNAVAILABLE: { retryable: true },
  MIGRATION_LOCKED: { retryable: true },
  MIGRATION_CHANGED: { retryable: false },
  DATA_DIR_UNUSABLE: { retryable: false },
  DATA_DIR_IN_USE: { retryable: false },
  PART_NOT_STARTED: { retryable: false },
  PORT_IN_USE: { retryable: false },
  PROGRAM_MISSING: { retryable: false },
  KAFKA_UNAVAILABLE: { retryable: true },
  KAFKA_DENIED: { retryable: true },
  KAFKA_REFUSED: { retryable: false },
  PARTITION_LOST: { retryable: false },
  PARTITION_STOPPED: { retryable: false },
  REPLAY_REFUSED: { retryable: false },
  SEEK_INVALID: { retryable: false },
  JOURNAL_UNUSABLE: { retryable: false },
} as const satisfies Record<string, ErrorFacts>

/** One of the codes of `errorFacts`. */
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
