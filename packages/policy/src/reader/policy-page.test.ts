import { readFileSync } from 'node:fs'
import { decideModel, type ModelCell } from '@weir/core/algorithms/decide-model.ts'
import { expect, test } from 'vitest'
import { createLimitResolver } from '../match/resolve-limits.ts'
import { requirePolicy } from './require-policy.ts'

const page = readFileSync(new URL('../../../../docs/policy.md', import.meta.url), 'utf8')
const examples = page.split('```yaml\n').slice(1)
const example = (named: string) => examples.find((text) => text.includes(named))?.split('```')[0] ?? ''

test('the hybrid in docs/policy.md is a quota of a minute that cannot be used up in one second', () => {
  const text = `${example('search-second')}\nversion: 1\nplans: { free: { limits: [] } }\nsubjects: { acme: { plan: free } }`
  const policy = requirePolicy(text, 'docs/policy.md')
  const [subject, route] = [policy.subjects.get('acme'), policy.routes[0]]
  if (subject === undefined || route === undefined) throw new Error('the page has no such example')
  const limits = createLimitResolver(policy)(subject, route)
  const cells = new Map<string, ModelCell>()
  const scope = { subject: 'acme', keyId: '', ip: '', route: route.template, method: 'POST' }
  const at = (seconds: number) => {
    const request = { scope, cost: route.cost, peek: false, limits, timeZone: 'UTC', anchor: 1 }
    const planned = limits.map((limit) => ({ limit, key: limit.name, boundaries: undefined }))
    const { decision, changes } = decideModel(cells, request, planned, 1_200_000_000 + seconds * 1_000_000)
    for (const [key, cell] of changes) cells.set(key, cell)
    return decision
  }
  const burst = Array.from({ length: 9 }, () => at(0))
  expect(burst.map(({ deniedBy }) => deniedBy)).toEqual([...Array(8).fill(''), 'search-second'])
  expect(burst.at(-1)?.retryAfterMs).toBe(250)
  expect(burst.at(-1)?.limits.map(({ used }) => used)).toEqual([40, 40])
  const rest = Array.from({ length: 118 }, (_, n) => at(0.25 + n * 0.25))
  expect(rest.filter(({ allowed }) => allowed)).toHaveLength(112)
  expect(rest.at(-1)?.deniedBy).toBe('search-minute')
  expect(at(60).allowed).toBe(true)
})

test("a subject's own version of a limit is written as docs/policy.md shows it", () => {
  const text = example('limits: { minute: { size: 500 } }').replace(/^/, 'version: 1\n')
  const limits =
    'plans: { free: { limits: [minute] } }\nlimits: { minute: { algorithm: sliding_log, size: 9, window: 1m } }'
  const policy = requirePolicy(`${text}\n${limits}`, 'docs/policy.md')
  expect(policy.subjects.get('acme')?.ownLimits.get('minute')?.size).toBe(500)
})
