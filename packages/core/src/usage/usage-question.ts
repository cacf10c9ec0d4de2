import { type GivenParameters, type ParsedQuestion, parseQuestion, type Question } from './question.ts'

/** What usage can be broken down by; the columns of its rollups. */
const usageDimensions = ['subject', 'key_id', 'plan', 'route', 'method', 'outcome', 'denied_by'] as const
export type UsageDimension = (typeof usageDimensions)[number]

/** Who used what, when. */
export type UsageQuestion = Question<UsageDimension>

/** Reads a question about usage from query parameters. */
export const parseUsageQuestion = (given: GivenParameters, nowMs: number): ParsedQuestion<UsageDimension> =>
  parseQuestion({ dimensions: usageDimensions, hasMinutes: true }, given, nowMs)
