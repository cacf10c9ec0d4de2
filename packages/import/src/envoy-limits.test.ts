import { expect, test } from 'vitest'
import type { EnvoyDescriptor } from './envoy-config.ts'
import { limitsOfRules } from './envoy-limits.ts'
import { rulesBelow } from './envoy-rules.ts'
import { Notes } from './notes.ts'

const numbers = [...Array(2_000).keys()]

const descriptor = (name: string, replaces: readonly string[]): EnvoyDescriptor => ({
  file: '0.yaml',
  line: 1,
  key: 'k',
  value: name,
  isShadow: false,
  isShared: false,
  descriptors: [],
  limit: { file: '0.yaml', line: 1, per: { unit: 'day', requests: 1 }, name, replaces },
})

test('thousands of limits that replace each other are not compared each with each', () => {
  const names = numbers.slice(0, 500).map((at) => `old${at}`)
  const rules = rulesBelow(
    numbers.flatMap((at) => [descriptor(`old${at}`, []), descriptor(`new${at}`, names)]),
    new Notes(),
  )
  const beganMs = performance.now()
  const { limits } = limitsOfRules([{ domain: 'd', rules }], new Notes())
  expect(limits.get('new1999')?.body.replaces).toHaveLength(500)
  // Half a second here; a minute when every name is looked for among all limits.
  expect(performance.now() - beganMs).toBeLessThan(15_000)
}, 120_000)
