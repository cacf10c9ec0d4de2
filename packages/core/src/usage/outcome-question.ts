import { type GivenParameters, type ParsedQuestion, parseQuestion, type Question } from './question.ts'

/** What outcomes can be broken down by; the columns of their rollup. */
const outcomeDimensions = ['subject', 'route', 'method'] as const
export type OutcomeDimension = (typeof outcomeDimensions)[number]

/** How upstreams answered whom, when. */
export type OutcomeQuestion = Question<OutcomeDimension>

/** Reads a question about outcomes from query parameters. */
export const parseOutcomeQuestion = (given: GivenParameters, nowMs: number): ParsedQuestion<OutcomeDimension> =>
  parseQuestion({ dimensions: outcomeDimensions, hasMinutes: false }, given, nowMs)
