import { expect, it } from 'vitest'
import { limitSentence } from '../web/parts/limit-sentence.ts'

const of = (subject: string, before: number, after: number) => ({ subject, before, after })
const impact = (before: number, after: number, subjects: ReturnType<typeof of>[], routes: string[] = []) => ({
  before,
  after,
  subjects,
  routes: routes.map((route) => ({ route, before, after })),
})

it.each([
  [impact(5, 5, []), 'At 120, nobody would be refused more or less often.'],
  [
    impact(0, 1, [of('acme', 0, 1)], ['GET /v1/x']),
    'At 120, acme would be refused 1 more time in 7 days, mostly on GET /v1/x.',
  ],
  [
    impact(10, 1_412, [of('a', 10, 1_000), of('b', 0, 400), of('c', 0, 10), of('d', 0, 2)]),
    'At 120, a, b and 2 others would be refused 1,402 more times in 7 days.',
  ],
  [
    impact(30, 10, [of('a', 20, 10), of('b', 10, 0)], ['POST /v1/search']),
    'At 120, a and b would be refused 20 fewer times in 7 days, mostly on POST /v1/search.',
  ],
])('%#: one sentence says who, how often and where', (told, words) => {
  expect(limitSentence(told, 120)).toBe(words)
})
