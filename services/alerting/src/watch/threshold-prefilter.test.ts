import { type DecisionInput, encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { decisionInput } from '@weir/contracts/testing/decision-input.ts'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createThresholdPrefilter } from './threshold-prefilter.ts'

const never = Number.POSITIVE_INFINITY
const isNear = createThresholdPrefilter(
  new Map([
    ['day', { percent: 80, units: never, isBlocking: false }],
    ['month', { percent: never, units: 500, isBlocking: true }],
    ['week', { percent: never, units: never, isBlocking: false, periodMs: 1_000_000 }],
  ]),
)
const near = (text: string) => isNear(Buffer.from(text), 0, Buffer.byteLength(text))

const recordOf = (limits: DecisionInput['limits'], subject = 'acme') =>
  `${encodeDecisionOpen(decisionInput({ subject, limits }))},"journal":"01a1fdfa-6d10-4540-81b4-576e9d55a36f","seq":7}`

const limit = (name: string, used: number, size = 1_000, remaining = 7, resetMs = 5) => ({
  name,
  size,
  used,
  remaining,
  resetMs,
})

test('a record may cross from the lowest threshold of one of its limits on', () => {
  expect(near(recordOf([limit('day', 799)]))).toBe(false)
  expect(near(recordOf([limit('day', 800)]))).toBe(true)
  expect(near(recordOf([limit('minute', 1_000), limit('day', 799), limit('hour', 1_000)]))).toBe(false)
  expect(near(recordOf([limit('minute', 1), limit('day', 800)]))).toBe(true)
  expect(near(recordOf([]))).toBe(false)
})

test('a record may cross by units whatever the size, and by a block where nothing remains', () => {
  expect(near(recordOf([limit('month', 499)]))).toBe(false)
  expect(near(recordOf([limit('month', 500, 1_000_000)]))).toBe(true)
  expect(near(recordOf([limit('month', 0, 1_000, 0)]))).toBe(true)
  expect(near(recordOf([limit('day', 0, 1_000, 0)]))).toBe(false)
})

test('a record may cross by a forecast where more of the size is used than of the shortest period is over', () => {
  expect(near(recordOf([limit('week', 250, 1_000, 750, 750_000)]))).toBe(false)
  expect(near(recordOf([limit('week', 251, 1_000, 749, 750_000)]))).toBe(true)
  expect(near(recordOf([limit('week', 99, 1_000, 901, 999_000)]))).toBe(false)
  expect(near(recordOf([limit('week', 1_000, 1_000, 0, 999_000)]))).toBe(false)
  expect(near(recordOf([limit('week', 251, 1_000, 749, 750_000)]).replace('"reset_ms"', '"reset"'))).toBe(true)
})

test('a number is compared exactly, whatever its size', () => {
  const size = 2 ** 53 - 1
  expect(near(recordOf([limit('day', size, size)]))).toBe(true)
  const sizes = fc.integer({ min: 1, max: 10 ** 12 })
  fc.assert(
    fc.property(sizes, sizes, (of, used) => {
      expect(near(recordOf([limit('day', used, of)]))).toBe(BigInt(used) * 100n >= BigInt(of) * 80n)
    }),
  )
})

test('a record of another form is left to the parser: without limits, or with names that imitate them', () => {
  expect(near('{"v":1,"limits":[{"size":1,"name":"day","used":0}]}')).toBe(true)
  expect(near('{"v":1,"limits": []}')).toBe(true)
  expect(near('{"v":1}')).toBe(true)
  expect(near('{"v":1,"limits":[{"name":"day","size":10,"used":1')).toBe(true)
  expect(near(recordOf([limit('day', 1)], '"limits":[{"name":"day","size":1,"used":1}]'))).toBe(false)
  expect(near(recordOf([limit('day', 900)], '"limits":[]'))).toBe(true)
})

test('what limits counted by is skipped, whatever is in it', () => {
  const texts = fc.dictionary(fc.string(), fc.string({ unit: 'binary' }), { minKeys: 1 })
  fc.assert(
    fc.property(texts, fc.boolean(), (by, isHigh) => {
      const limits = [
        { ...limit('minute', 1_000), by },
        { ...limit('day', isHigh ? 800 : 799), by },
      ]
      expect(near(recordOf(limits))).toBe(isHigh)
    }),
  )
  expect(near(recordOf([{ ...limit('day', 1), by: { ip: '}]}' } }]))).toBe(false)
})

test('a value is read from its place in the fetch, and never beyond its end', () => {
  const [low, high] = [recordOf([limit('day', 1)]), recordOf([limit('day', 900)])]
  const bytes = Buffer.from(`${low}${high}{"mark":1}${high}`)
  const second = low.length + high.length
  expect(isNear(bytes, 0, low.length)).toBe(false)
  expect(isNear(bytes, low.length, second)).toBe(true)
  expect(isNear(bytes, second, second + 10)).toBe(true)
})
