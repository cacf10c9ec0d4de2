import { expect, it } from 'vitest'
import { parseDecisionQuery } from './decision-query.ts'

const nowMs = Date.parse('2026-11-22T12:00:00Z')
const [hourMs, dayMs] = [3_600_000, 86_400_000]

it('asks for the last hour unless told otherwise', () => {
  expect(parseDecisionQuery({}, nowMs, false)).toEqual({
    kind: 'query',
    query: {
      only: {},
      except: {},
      subjectPrefix: undefined,
      minCost: 0,
      fromMs: nowMs - hourMs,
      toMs: nowMs,
      statuses: [],
      corrected: false,
      unsettled: false,
      limit: 100,
    },
  })
})

it.each([
  [dayMs, {}, false, 'query'],
  [dayMs + 1, {}, false, 'problems'],
  [dayMs + 1, {}, true, 'query'],
  [31 * dayMs, { ip: '192.0.2.7' }, false, 'query'],
  [31 * dayMs + 1, { subject: 'acme' }, true, 'problems'],
  [dayMs + 1, { not_subject: 'acme', plan: 'free' }, false, 'problems'],
] as const)('a span of %i ms with %j, narrow %j, is %4$s', (spanMs, given, isNarrow, kind) => {
  const from = new Date(nowMs - spanMs).toISOString()
  expect(parseDecisionQuery({ from, ...given }, nowMs, isNarrow).kind).toBe(kind)
})
