import type { UsageDimension, UsageQuestion } from '@weir/core/usage/question.ts'
import type { ClickHouseClient } from './connect.ts'
import { askRows } from './question-sql.ts'

/** One row of an answer. Counts are text where they could exceed 2^53. */
export interface UsageRow extends Partial<Record<UsageDimension, string>> {
  /** Start of the step, ISO 8601 with the zone's offset. Absent for step `total`. */
  readonly ts?: string
  /** Decisions. */
  readonly count: string
  readonly allowed: string
  readonly denied: string
  /** Units consumed by the allowed decisions, corrections included. */
  readonly cost: string
}

/** The smallest rollup that can answer. Times are cut to its buckets: minutes for step `minute`, else quarter hours. */
function tableFor({ step, subject, by }: UsageQuestion): { table: string; bucketMs: number } {
  if (step === 'minute') return { table: 'usage_1m', bucketMs: 60_000 }
  const everybody = subject === undefined && !by.includes('subject') && !by.includes('key_id')
  return { table: everybody ? 'usage_total_15m' : 'usage_15m', bucketMs: 900_000 }
}

/** Units in 128 bits: over years and all subjects, 64 might not do. */
const sums = [
  'sum(u.count) AS count',
  "sumIf(u.count, u.outcome = 'allow') AS allowed",
  "sumIf(u.count, u.outcome = 'deny') AS denied",
  "toString(sumIf(toInt128(u.cost), u.outcome = 'allow')) AS cost",
]

/** Answers from the rollups; rejects with ClickHouse's error. */
export const askUsage = (client: ClickHouseClient, question: UsageQuestion): Promise<UsageRow[]> =>
  askRows(client, { ...tableFor(question), sums }, question)
