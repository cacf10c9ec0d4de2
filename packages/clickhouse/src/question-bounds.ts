import { ClickHouseError, type ClickHouseSettings } from '@clickhouse/client'

/** A page may take so long: a person waits for it. */
export const pageMsMax = 10_000

/** Rows of one stream: a table of some hundred MB, which programs still load whole. */
export const streamRowsMax = 10_000_000

/** What a question may cost the ClickHouse of metering. Beyond 400 MB groups and order go through its disk. */
export const questionBounds = (msMax: number): ClickHouseSettings => ({
  max_execution_time: msMax / 1_000,
  max_bytes_to_read: '20000000000',
  max_memory_usage: '1000000000',
  max_bytes_before_external_group_by: '400000000',
  max_bytes_before_external_sort: '400000000',
})

/** The bound that a question met: of rows, bytes or memory; of time. */
type QuestionBound = 'too-large' | 'timed-out'

/** ClickHouse does not answer a question that it understood. */
export class QuestionBoundMet extends Error {
  readonly bound: QuestionBound

  constructor(bound: QuestionBound, cause: unknown) {
    super(`a question is ${bound}`, { cause })
    this.bound = bound
  }
}

const boundCodes: Readonly<Record<string, QuestionBound>> = {
  158: 'too-large',
  241: 'too-large',
  307: 'too-large',
  396: 'too-large',
  159: 'timed-out',
  160: 'timed-out',
}

/** Throws what a question failed with, as a `QuestionBoundMet` where it met a bound. */
export function throwBound(error: unknown): never {
  const bound = error instanceof ClickHouseError ? boundCodes[error.code] : undefined
  throw bound === undefined ? error : new QuestionBoundMet(bound, error)
}
