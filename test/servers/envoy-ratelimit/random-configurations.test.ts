import { importEnvoy, importedText } from '@weir/import/import-envoy.ts'
import { createDescriptorMatcher, type DescriptorEntry } from '@weir/policy/match/match-descriptor.ts'
import { parsePolicy } from '@weir/policy/reader/parse-policy.ts'
import { expect, inject, onTestFinished, test } from 'vitest'
import { startReferenceServer } from '../../support/envoy-ratelimit/reference-server.ts'
import { createRlsClient } from '../../support/envoy-ratelimit/rls-client.ts'
import { createSeededRandom } from '../../support/seeded-random.ts'

const random = createSeededRandom()

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

test('of random configurations the same descriptors meet a limit as do at the server itself', async () => {
  const domains = Array.from({ length: 100 }, (_, at) => {
    const domain = `random-${at}`
    return { domain, text: JSON.stringify({ domain, descriptors: randomTrees(0) }) }
  })
  const result = importEnvoy(domains.map(({ domain, text }) => ({ name: domain, text })))
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems))
  const parsed = parsePolicy(importedText(result.policy, result.notes), 'weir.yaml')
  if (parsed.kind === 'problems') throw new Error(JSON.stringify(parsed.problems.slice(0, 5)))
  const matcher = createDescriptorMatcher(parsed.policy.routes)
  const reference = await startReferenceServer({
    ...{ redisUrl: inject('redisUrl'), prefix: `random-${process.pid}-` },
    files: Object.fromEntries(domains.map(({ domain, text }) => [`${domain}.yaml`, text])),
  })
  onTestFinished(() => reference.close())
  const client = await createRlsClient(reference.grpc)
  onTestFinished(() => client.close())
  const counts = { limited: 0, free: 0 }
  for (const { domain, text } of domains) {
    const all = Array.from({ length: 40 }, randomEntries)
    const answers = await Promise.all(
      all.map((entries) => client.shouldRateLimit({ domain, descriptors: [{ entries }] })),
    )
    for (const [at, entries] of all.entries()) {
      const isLimited = (matcher.match(domain, entries)?.limits ?? []).length > 0
      const where = `WEIR_TEST_SEED=${random.seed}: ${JSON.stringify(entries)} of ${text}`
      expect(isLimited, where).toBe(answers[at]?.overall_code === 'OVER_LIMIT')
      counts[isLimited ? 'limited' : 'free'] += 1
    }
  }
  expect(Math.min(counts.limited, counts.free)).toBeGreaterThan(400)
}, 900_000)
