import type { OutcomeDimension, OutcomeQuestion } from '@weir/core/usage/question.ts'
import type { ClickHouseClient } from './connect.ts'
import { askRows } from './question-sql.ts'

/** One row of an answer. Counts are text where they could exceed 2^53. */
export interface OutcomeRow extends Partial<Record<OutcomeDimension, string>> {
  /** Start of the step, ISO 8601 with the zone's offset. Absent for step `total`. */
  readonly ts?: string
  /** Answers of upstreams. */
  readonly count: string
  readonly status_1xx: string
  readonly status_2xx: string
  readonly status_3xx: string
  readonly status_4xx: string
  readonly status_5xx: string
  /** Answers that did not go out whole. */
  readonly broken: string
  readonly bytes_in: string
  readonly bytes_out: string
  /** Milliseconds, within about a hundredth; null where there was no answer. */
  readonly p50_ms: number | null
  readonly p90_ms: number | null
  readonly p99_ms: number | null
}

const summed = ['status_1xx', 'status_2xx', 'status_3xx', 'status_4xx', 'status_5xx', 'broken', 'bytes_in', 'bytes_out']

/** Of no answers the quantile is not a number, which JSON has as null. */
const quantile = (index: number) => `round(quantilesTDigestMerge(0.5, 0.9, 0.99)(u.duration_ms)[${index}], 3)`

const source = {
  table: 'outcomes_15m',
  bucketMs: 900_000,
  sums: [
    'sum(u.count) AS count',
    ...summed.map((name) => `sum(u.${name}) AS ${name}`),
    ...['p50_ms', 'p90_ms', 'p99_ms'].map((name, index) => `${quantile(index + 1)} AS ${name}`),
  ],
}

/** Answers from the rollup, by whole quarter hours; rejects with ClickHouse's error. */
export const askOutcomes = (client: ClickHouseClient, question: OutcomeQuestion): Promise<OutcomeRow[]> =>
  askRows(client, source, question)
