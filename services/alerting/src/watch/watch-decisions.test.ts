import { type DecisionInput, encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { encodeGapOpen, encodeMark } from '@weir/contracts/journal.v1.ts'
import { decisionInput } from '@weir/contracts/testing/decision-input.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, test } from 'vitest'
import { noCounts } from '../metrics.ts'
import { createWatcher, type WatchedRecord } from './watch-decisions.ts'

const policy = requirePolicy(
  `
version: 1
plans: { free: { limits: [day] } }
limits: { day: { algorithm: fixed_window, size: 10, period: day, thresholds: [80%, 100%] } }
subjects: { acme: { plan: free } }
`,
  'weir.yaml',
)
const journal = '01a1fdfa-6d10-4540-81b4-576e9d55a36f'
const middayMs = Date.parse('2026-11-21T12:00:00Z')
const midnightInMs = 43_200_000

function open() {
  const counters = noCounts()
  const { watch } = createWatcher(() => policy, counters)
  return { counters, watch: (values: readonly (Buffer | null)[]) => watch(values.map(recordOf)) }
}

/** As a fetch holds it: something stands before and after. */
function recordOf(value: Buffer | null): WatchedRecord {
  if (value === null) return { value, bytes: Buffer.alloc(0), valueStart: -1, valueEnd: -1 }
  const bytes = Buffer.concat([Buffer.from('before'), value, Buffer.from('after')])
  return { value, bytes, valueStart: 6, valueEnd: 6 + value.length }
}

const numbered = (openLine: string) => Buffer.from(`${openLine},"journal":"${journal}","seq":7}`)

const decision = (used: number, given: Partial<DecisionInput> = {}) =>
  numbered(
    encodeDecisionOpen(
      decisionInput({
        id: `used-${used}`,
        tsMs: middayMs,
        limits: [{ name: 'day', size: 10, used, remaining: 10 - used, resetMs: midnightInMs }],
        ...given,
      }),
    ),
  )

test('watermarks and gap records among decisions are skipped, and do not count as unreadable', () => {
  const { counters, watch } = open()
  const gap = encodeGapOpen({ cause: 'journal_full', count: 3, fromMs: 0, toMs: 0, detail: '' })
  const crossings = watch([
    Buffer.from(encodeMark(middayMs, journal, 7, false)),
    decision(8),
    numbered(gap),
    Buffer.from('?'),
    null,
  ])
  expect(crossings).toMatchObject([{ decisionId: 'used-8', thresholds: [{ percent: 80 }] }])
  expect(counters).toMatchObject({ read: 3, unreadable: 2 })
})

test('a coalesced denial crosses what one of its denials would', () => {
  const sum = decision(10, { count: 5_000, outcome: 'deny', reason: 'limit', charged: 'no', deniedBy: 'day' })
  const [crossing, ...more] = open().watch([decision(9), sum, sum])
  expect(crossing).toMatchObject({ decisionId: 'used-9', thresholds: [{ percent: 80 }] })
  expect(more).toMatchObject([{ decisionId: 'used-10', thresholds: [{ percent: 100 }] }])
})

test('a correction raises what the count that it changed has reached, and one that changed none raises nothing', () => {
  const correction = { corrects: journal, adjustment: 3 }
  const settled = decision(10, { id: 'settled', count: 0, cost: 0, correction })
  const late = decision(0, { id: 'late', count: 0, cost: 0, limits: [], correction: { ...correction, adjustment: 0 } })
  const { counters, watch } = open()
  expect(watch([late, settled])).toMatchObject([
    { decisionId: 'settled', used: 10, thresholds: [{ percent: 100 }, { percent: 80 }] },
  ])
  expect(counters.unreadable).toBe(0)
})

test('a subject that gets thresholds of its own crosses them from then on', () => {
  const own = requirePolicy(
    JSON.stringify({
      version: 1,
      plans: { free: { limits: ['day'] } },
      limits: { day: { algorithm: 'fixed_window', size: 10, period: 'day', thresholds: ['80%'] } },
      subjects: { acme: { plan: 'free', limits: { day: { thresholds: ['30%'] } } } },
    }),
    'weir.yaml',
  )
  let inForce = policy
  const { watch, policyChanged } = createWatcher(() => inForce, noCounts())
  expect(watch([recordOf(decision(3))])).toEqual([])
  inForce = own
  policyChanged()
  expect(watch([recordOf(decision(3))])).toMatchObject([{ thresholds: [{ percent: 30 }] }])
})
