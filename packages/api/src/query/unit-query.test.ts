import { expect, test } from 'vitest'
import { parseUnitQuery } from './unit-query.ts'
import { parseUsageQuery } from './usage-query.ts'

const nowMs = Date.parse('2026-11-21T12:00:00Z')
type Given = Readonly<Record<string, string | readonly string[]>>
const ask = (given: Given) => parseUnitQuery({ unit: 'tokens', ...given }, { nowMs })
const problemsOf = (given: Given) => {
  const parsed = ask(given)
  return parsed.kind === 'problems' ? parsed.problems : []
}

test('A question about units may name every label, in by and as a filter, and each once', () => {
  const by = 'dimension.tag-b,model,unit,dimension.a.b'
  expect(
    ask({ by, 'dimension.tag-b': ['x', ''], not_basis: 'bound', unit: ['tokens', 'usd', 'tokens'] }),
  ).toMatchObject({
    query: {
      by: ['unit', 'model', 'dimension.tag-b', 'dimension.a.b'],
      only: { unit: ['tokens', 'usd'], 'dimension.tag-b': ['x', ''] },
      except: { basis: ['bound'] },
    },
  })
})

test('Units are ranked and compared by their quantity', () => {
  expect(ask({ by: 'model', top: '3', compare: 'previous' })).toMatchObject({
    query: { ranking: { measure: 'quantity', descending: true, top: 3 }, comparison: { measure: 'quantity' } },
  })
  expect(ask({ order: 'change', compare: 'previous' })).toMatchObject({ query: { ranking: { measure: 'change' } } })
  expect(problemsOf({ order: '-cost' })).toEqual([
    'order must be one of quantity, count, change, optionally with a leading -; did you mean count?',
  ])
})

const columns = 'subject, key_id, plan, route, parent, parents, unit, basis, meter, model, dimension.NAME'

test.each<[Given, string]>([
  [
    { outcome: 'allow', not_method: 'GET' },
    `unit conflicts with outcome, not_method: units are summed by quarter hour, by ${columns}`,
  ],
  [
    { price: 'true', step: 'minute' },
    `unit conflicts with price, step=minute: units are summed by quarter hour, by ${columns}`,
  ],
  [{ by: 'subject,outcome' }, `by takes ${columns}, but has outcome`],
  [{ by: 'dimension.' }, `by takes ${columns}, but has dimension.`],
  [{ by: 'model', top: '2', unit: ['tokens', 'usd'] }, 'top takes one unit: quantities of several have no rank'],
  [{ unit: Array.from({ length: 17 }, (_, at) => `u${at}`) }, 'unit has 17 values; at most 16 are taken'],
  [
    { unit: 'cost' },
    'unit must be the name of a unit, such as tokens, but is "cost"; usage without unit sums costs and requests',
  ],
  [
    Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`dimension.d${at}`, 'v'])),
    '9 labels are named; at most 8 are taken',
  ],
  [{ 'dimension.model': 'x'.repeat(513) }, 'a value of dimension.model is longer than 512 bytes'],
])('What a question about units cannot have is named: %j', (given, problem) => {
  expect(problemsOf(given)).toEqual([problem])
})

test.each([
  "dimension.a'b",
  'dimension.a b',
  'dimension.a`',
  'dimension._x',
  'dimension.a=b',
  `dimension.${'x'.repeat(65)}`,
])('No label is called %s', (name) => {
  expect(problemsOf({ [name]: 'v' })[0]).toMatch(/^unknown parameters: dimension\./)
  expect(problemsOf({ by: name })[0]).toMatch(/^by takes subject/)
})

test('Without a unit its columns are refused, and named', () => {
  const problems = (given: Given) => parseUsageQuery(given, { nowMs })
  expect(problems({ basis: 'bound', 'not_dimension.tag': 'x' })).toEqual({
    kind: 'problems',
    problems: ['basis needs unit', 'not_dimension.tag needs unit'],
  })
  expect(problems({ by: 'subject,unit,model', order: 'quantity' })).toMatchObject({
    problems: ['by=unit needs unit', 'by=model needs unit', expect.stringMatching(/^order must be one of cost/)],
  })
})
