import type { Remedy } from '@weir/api/decisions.ts'
import { countsInFlight } from '@weir/core/limits/algorithm-facts.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import { type Algorithm, algorithms, type Limit, type PeriodBoundaries, type Span } from '@weir/core/limits/limit.ts'
import type { Outcome } from '@weir/core/limits/script-codec.ts'
import { buildLimit, buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import { explainDecision } from '@weir/explain/explain-decision.ts'
import type { PolicyFacts, RecordedDecision } from '@weir/explain/recorded-decision.ts'
import { expect, inject, test } from 'vitest'
import { createRedisEngine } from '../support/decide-engines.ts'
import { createSeededRandom, type SeededRandom } from '../support/seeded-random.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const dayMs = 86_400_000
const startMs = 1_790_000_000_000
const refusalsWanted = 120
const callsMax = 4_000

const midnightMs = startMs - (startMs % dayMs)
const boundariesAt = (nowMs: number): PeriodBoundaries => {
  const first = midnightMs + Math.floor((nowMs - midnightMs) / dayMs) * dayMs
  return [first, first + dayMs, first + 2 * dayMs]
}

function drawLimit(random: SeededRandom, name: string, algorithm: Algorithm, blockMs: number): Limit {
  // Of `a` more is asked than it allows, and it always refuses that: a walk without refusals shows nothing.
  const isTight = name === 'a'
  const isPeriod = algorithm === 'fixed_window' && random.oneIn(2)
  const span: Span = isPeriod
    ? { kind: 'period', unit: 'day' }
    : { kind: 'window', ms: isTight ? 30_000 : random.pick([1_000, 30_000, 7_000]) }
  // A request takes one of them, and the walk is quick.
  const size = random.integer(1, countsInFlight({ algorithm }) ? 4 : 40)
  const capacity = algorithm === 'token_bucket' && random.oneIn(2) ? random.integer(1, 50) : size
  const onExceed = !isTight && random.oneIn(6) ? ({ kind: 'degrade' } as const) : ({ kind: 'deny' } as const)
  const mode = !isTight && random.oneIn(6) ? 'shadow' : 'enforce'
  const unit = countsInFlight({ algorithm }) || (!isTight && random.oneIn(5)) ? { unit: 'requests' } : {}
  return buildLimit({
    name,
    algorithm,
    size,
    capacity,
    span,
    mode,
    ...unit,
    ...(blockMs > 0 ? { blockMs } : { onExceed }),
  })
}

const isDecision = (outcome: Outcome | undefined): outcome is Decision => outcome !== undefined && 'allowed' in outcome

/** A refusal as the ingress records it. */
const recordOf = (decision: Decision, cost: number, nowMs: number): RecordedDecision => ({
  ts_ms: nowMs,
  plan: 'now',
  cost,
  count: 1,
  outcome: 'deny',
  reason: decision.reason,
  mode: 'enforce',
  charged: 'no',
  denied_by: decision.deniedBy,
  shadowed_by: '',
  limits: decision.limits.map(({ resetMs, ...limit }) => ({ ...limit, reset_ms: resetMs, by: {}, at: '' })),
  retry_ms: decision.reason === 'cost_exceeds_limit' ? -1 : decision.retryAfterMs,
  correction: undefined,
  held: {},
  units: {},
})

const resized = (limits: readonly Limit[], remedies: readonly Remedy[], less?: Remedy): readonly Limit[] =>
  limits.map((limit) => {
    const remedy = remedies.find((one) => 'limit' in one && one.limit === limit.name)
    if (remedy === undefined || !('at_least' in remedy)) return limit
    const to = remedy.at_least - (remedy === less ? 1 : 0)
    return remedy.how === 'burst' ? { ...limit, capacity: to } : { ...limit, size: to, capacity: to }
  })

const policyOf = (now: readonly Limit[], other: readonly Limit[]): PolicyFacts => ({
  limits: now.map((limit) => ({ limit, because: ['plan now'] })),
  plans: [
    { name: 'now', limits: now },
    { name: 'other', limits: other },
  ],
})

test.each<readonly [string, number, readonly [Algorithm, ...Algorithm[]]]>([
  ...algorithms.map((algorithm) => [algorithm, 0, [algorithm]] as const),
  ...algorithms.map((algorithm) => [`${algorithm} with blocks`, 2_500, [algorithm]] as const),
  ['every algorithm', 0, ['fixed_window', ...algorithms.slice(1)]],
])(
  'What would have admitted a refused request admits it in the script, and a little less does not: %s',
  async (_, blockMs, drawn) => {
    const random = createSeededRandom()
    const redis = await openLimiterRedis(inject('redisUrl'))
    // `before` is as `after`, but for the refused request itself, which may have set a block.
    const [before, after] = [createRedisEngine(redis), createRedisEngine(redis)]
    const names = ['a', 'b', 'c', 'd'] as const
    const pool = names.map((name) => drawLimit(random, name, random.pick(drawn), blockMs))
    const [now, other] = [pool.slice(0, 3), [...pool.slice(2), ...(random.oneIn(2) ? pool.slice(0, 1) : [])]]
    const policy = policyOf(now, other)
    const seen = new Set<string>()
    let [nowMs, refusals] = [startMs, 0]
    for (let call = 0; refusals < refusalsWanted && call < callsMax; call += 1) {
      const seed = `WEIR_TEST_SEED=${random.seed}, call ${call}`
      nowMs += random.pick([0, 1, 40, 333, 1_000, 2_500, 9_000])
      const cost = random.integer(1, random.oneIn(8) ? 60 : 8)
      const decideIn = async (
        engine: typeof before,
        changes: Parameters<typeof buildLimitRequest>[0],
        atMs = nowMs,
      ) => {
        const request = buildLimitRequest({ cost, limits: now, ...changes })
        const { outcomes } = await engine.decide({ requests: [request], nowMs: atMs, boundaries: boundariesAt(atMs) })
        const [outcome] = outcomes
        if (!isDecision(outcome)) throw new Error(`${seed}: no decision`)
        return outcome
      }
      const decision = await decideIn(after, {})
      if (decision.allowed) {
        expect((await decideIn(before, {})).allowed, seed).toBe(true)
        continue
      }
      refusals += 1
      const {
        would_have_allowed: remedies,
        allowed_at,
        summary,
      } = explainDecision(recordOf(decision, cost, nowMs), policy)
      const admits = async (changes: Parameters<typeof buildLimitRequest>[0]) =>
        (await decideIn(before, { ...changes, peek: true })).allowed
      const waits = async (ms: number) => (await decideIn(after, { peek: true }, nowMs + ms)).allowed
      for (const remedy of remedies) {
        const what = `${seed}: ${JSON.stringify(remedy)} of ${JSON.stringify({ cost, decision, now })}`
        const { how, ms = Number.NaN, at_most: most = Number.NaN } = remedy
        seen.add(how)
        if (how === 'wait') {
          expect([await waits(ms), await waits(ms - 1)], what).toEqual([true, false])
          expect(Date.parse(allowed_at ?? ''), what).toBe(nowMs + ms)
        } else if (how === 'cost') {
          const costs = [await admits({ cost: most }), await admits({ cost: most + 1 })]
          expect(costs, what).toEqual([true, false])
        } else if (how === 'plan') {
          expect(await admits({ limits: other }), what).toBe(true)
        } else {
          const enough = resized(now, remedies)
          const less = resized(now, remedies, remedy)
          expect([await admits({ limits: enough }), await admits({ limits: less })], what).toEqual([true, false])
        }
      }
      const hows = remedies.map(({ how }) => how)
      if (!hows.includes('plan')) expect(await admits({ limits: other }), `${seed}: plan`).toBe(false)
      if (!hows.includes('cost') && decision.reason !== 'blocked')
        expect(await admits({ cost: 1 }), `${seed}: cost`).toBe(false)
      const isGuess = now.some((limit, at) => countsInFlight(limit) && (decision.exceededMask & (1 << at)) !== 0)
      if (!hows.includes('wait') && !isGuess) {
        expect([decision.reason, await waits(30 * dayMs)], `${seed}: wait`).toEqual(['cost_exceeds_limit', false])
        expect(summary).toContain('Waiting does not help')
      }
      await decideIn(before, {})
    }
    expect(refusals, `WEIR_TEST_SEED=${random.seed}`).toBeGreaterThan(0)
    expect(seen.size).toBeGreaterThan(0)
  },
)
