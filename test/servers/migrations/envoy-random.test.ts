import { importEnvoy } from '@weir/import/import-envoy.ts'
import { importedText } from '@weir/import/imported-policy.ts'
import { createDescriptorMatcher, type DescriptorEntry } from '@weir/policy/match/match-descriptor.ts'
import { parsePolicy } from '@weir/policy/reader/parse-policy.ts'
import { expect, test } from 'vitest'
import { createSeededRandom } from '../../support/seeded-random.ts'

/** The seed of what was recorded: another order of draws below is other configurations, and needs another record. */
const random = createSeededRandom(1)

/**
 * What envoyproxy/ratelimit v1.4.1-0.20230427142404-e2a87f41d3a7 answered on 28 November 2026: 40 bits for each of 100
 * configurations, 1 where the descriptor met a limit.
 */
const recorded = [
  '124a07c9a62c08481148028048084e80614000b4540014e02b00c1c4086038900c122830b448818908b6c030480400408434',
  '6b230528b9690202000200aab944ba00a400ca030080080000330c51e08b30a41005040800104000504554902c820a4080ca',
  '19093235400006504000000210040170804800103800c28c8e0459004000e00244c9e00101470509bb82125bcc8001004000',
  'aa842b00b2d58e0988916801421321aca4002080c400791765900180200000000000000860004d2106000050281400200000',
  'e2992832e80010a40000200030201020280200104020948f0ac97047a0ae01000004a000db34001000020000205025200141',
  '0025a10221f0773918a5144100c4201081350000803041270523000e0d1010240011005ad8a941bc51684691008040009464',
  '66475404c24012a042209c428009881016910791a05a1182420045079200d1a2a54364432485688003d12263c010917caae4',
  'ae08409b20041000080069286025d09400609424a0208459000000846000aa2180d14e859a605d5970818020170008000002',
  '667808bf66fc32158000000220000105030101400800001210675eac075c1aca0e60e50020009024109420a1b22c006440a0',
  '20000400208651fd7685206a2000040013a60a001a30044843010001120022000a02682810d0826650200850040009600a01',
].join('')
const answered = (configuration: number, descriptor: number) =>
  ((Number.parseInt(recorded[configuration * 10 + (descriptor >> 2)] ?? '', 16) >> (3 - (descriptor & 3))) & 1) === 1

interface Tree {
  readonly key: string
  readonly value: string
  readonly rate_limit?: object
  readonly descriptors: readonly Tree[]
}

const keys = ['a', 'b'] as const
/** The server looks for beginnings at the top only. */
const plainValues = ['', 'x', 'xy', 'z'] as const
const topValues = [...plainValues, 'x*', 'xy*', '*'] as const
/** A limit of 0 shows at the first request whether one was found. */
const shut = { rate_limit: { unit: 'day', requests_per_unit: 0 } }
const limits: [object, ...object[]] = [{}, { rate_limit: { unlimited: true } }, shut, shut]

function randomTrees(depth: number): readonly Tree[] {
  const found = new Map<string, Tree>()
  for (let left = random.integer(depth === 0 ? 4 : 0, depth === 0 ? 10 : 6); left > 0; left -= 1) {
    const [key, value] = [random.pick(keys), random.pick(depth === 0 ? topValues : plainValues)]
    found.set(`${key}=${value}`, {
      key,
      value,
      ...random.pick(limits),
      descriptors: depth === 2 ? [] : randomTrees(depth + 1),
    })
  }
  return [...found.values()]
}

function randomEntries(): readonly DescriptorEntry[] {
  return Array.from({ length: random.integer(1, 3) }, () => ({
    key: random.pick(keys),
    value: random.pick(['x', 'xy', 'xyz', 'z', 'other']),
  }))
}

test('Of random configurations, imported, the same descriptors meet a limit as met one at envoyproxy/ratelimit', () => {
  const domains = Array.from({ length: 100 }, (_, at) => {
    const domain = `random-${at}`
    return { domain, text: JSON.stringify({ domain, descriptors: randomTrees(0) }) }
  })
  const result = importEnvoy(domains.map(({ domain, text }) => ({ name: domain, text })))
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems))
  const parsed = parsePolicy(importedText(result.policy, result.notes), 'weir.yaml')
  if (parsed.kind === 'problems') throw new Error(JSON.stringify(parsed.problems.slice(0, 5)))
  const matcher = createDescriptorMatcher(parsed.policy.routes)
  for (const [number, { domain, text }] of domains.entries()) {
    for (const [at, entries] of Array.from({ length: 40 }, randomEntries).entries()) {
      const isLimited = (matcher.match(domain, entries)?.limits ?? []).length > 0
      expect(isLimited, `${JSON.stringify(entries)} of ${text}`).toBe(answered(number, at))
    }
  }
})
