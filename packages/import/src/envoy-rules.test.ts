import { createDescriptorMatcher, type DescriptorEntry } from '@weir/policy/match/match-descriptor.ts'
import { parsePolicy } from '@weir/policy/reader/parse-policy.ts'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { importEnvoy } from './import-envoy.ts'
import { importedText } from './imported-policy.ts'

interface Tree {
  readonly key: string
  readonly value: string
  readonly limit: 'none' | 'unlimited' | 'limited'
  readonly descriptors: readonly Tree[]
}

/** The server's way of finding a limit, as its documentation and code have it: down one branch, never back. */
function foundByServer(trees: readonly Tree[], [entry, ...rest]: readonly DescriptorEntry[]): Tree | undefined {
  if (entry === undefined) return undefined
  const sameKey = trees.filter(({ key }) => key === entry.key)
  const next =
    sameKey.find(({ value }) => value === entry.value && value !== '') ??
    sameKey.find(({ value }) => value.endsWith('*') && entry.value.startsWith(value.slice(0, -1))) ??
    sameKey.find(({ value }) => value === '')
  return rest.length === 0 || next === undefined ? next : foundByServer(next.descriptors, rest)
}

const keys = ['a', 'b']
const values = ['', '', 'x', 'xy', 'x*', 'xy*', '*']
const entry = fc.record({ key: fc.constantFrom(...keys), value: fc.constantFrom('x', 'xy', 'xyz', 'z') })
const level = (below: fc.Arbitrary<readonly Tree[]>): fc.Arbitrary<readonly Tree[]> =>
  fc.uniqueArray(
    fc.record({
      key: fc.constantFrom(...keys),
      value: fc.constantFrom(...values),
      limit: fc.constantFrom('none', 'unlimited', 'limited', 'limited'),
      descriptors: below,
    }),
    { selector: ({ key, value }) => `${key}=${value}`, maxLength: 5 },
  )
const trees = level(level(level(fc.constant([]))))

let count = 0
/** Every limit with a name of its own, which is its name in the policy too. */
function named(tree: Tree, names: Map<Tree, string>): unknown {
  count += 1
  const { key, value, limit } = tree
  const name = `n${count}`
  if (limit === 'limited') names.set(tree, name)
  const limits = {
    none: {},
    unlimited: { rate_limit: { unlimited: true } },
    limited: { rate_limit: { name, unit: 'day', requests_per_unit: 1 } },
  }
  return { key, value, ...limits[limit], descriptors: tree.descriptors.map((one) => named(one, names)) }
}

test('in any configuration, a descriptor meets the limit that it met before the import, and none where it met none', () => {
  const property = fc.property(
    trees,
    fc.array(fc.array(entry, { minLength: 1, maxLength: 3 }), { minLength: 40, maxLength: 80, size: 'max' }),
    (tree, asked) => {
      const names = new Map<Tree, string>()
      const text = JSON.stringify({ domain: 'd', descriptors: tree.map((one) => named(one, names)) })
      const result = importEnvoy([{ name: 'd.yaml', text }])
      if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems))
      const parsed = parsePolicy(importedText(result.policy, result.notes), 'weir.yaml')
      if (parsed.kind === 'problems') throw new Error(JSON.stringify(parsed.problems))
      const matcher = createDescriptorMatcher(parsed.policy.routes)
      for (const entries of asked) {
        const met = foundByServer(tree, entries)
        const limits = matcher.match('d', entries)?.limits.map(({ name }) => name) ?? []
        expect([entries, limits]).toEqual([
          entries,
          met === undefined ? [] : [names.get(met)].filter((name) => name !== undefined),
        ])
      }
    },
  )
  fc.assert(property, { numRuns: 100 })
}, 30_000)
