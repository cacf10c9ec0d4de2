import type { Decision } from '@weir/core/limits/decision.ts'
import { chargesBeyond } from '@weir/core/limits/exceeding.ts'
import { type Algorithm, algorithms, type Limit, type PeriodBoundaries, type Span } from '@weir/core/limits/limit.ts'
import type { LimitRequest } from '@weir/core/limits/limit-store.ts'
import type { Operation } from '@weir/core/limits/script-codec.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { expect, inject, test } from 'vitest'
import { createModelEngine, createRedisEngine, type OperationsCall } from '../support/decide-engines.ts'
import { createSeededRandom, type SeededRandom } from '../support/seeded-random.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const callCount = 1_500
const dayMs = 86_400_000
const names = ['a', 'b', 'c', 'd'] as const
/** Charged requests that may yet be given back. */
const rememberedMax = 30

interface Charged {
  readonly request: LimitRequest
  readonly decision: Decision
}

/** Limits as a policy has them: now and then one is edited, even to another algorithm; names stay. */
class EditedLimits {
  readonly #random: SeededRandom
  readonly #algorithms: readonly [Algorithm, ...Algorithm[]]
  readonly #limits = new Map<string, Limit>()

  constructor(random: SeededRandom, drawn: readonly [Algorithm, ...Algorithm[]]) {
    this.#random = random
    this.#algorithms = drawn
  }

  /** Before a call. */
  edit(): void {
    for (const name of names) {
      if (this.#random.oneIn(25) || !this.#limits.has(name)) this.#limits.set(name, this.#drawAny(name))
    }
  }

  /** Within a call a log has one definition; a state that is read whole may be edited between two requests. */
  draw(name: string): Limit {
    const limit = this.#limits.get(name) ?? this.#drawAny(name)
    if (limit.algorithm === 'sliding_log' || !this.#random.oneIn(10)) return limit
    const edited = this.#drawAny(name)
    return edited.algorithm === 'sliding_log' ? limit : edited
  }

  #modes(): Pick<Limit, 'mode' | 'blockMs' | 'blockLengths' | 'onExceed'> {
    const mode = this.#random.oneIn(5) ? 'shadow' : 'enforce'
    if (this.#random.oneIn(6)) return { mode, blockMs: 0, onExceed: { kind: this.#random.pick(['degrade', 'charge']) } }
    if (this.#random.oneIn(5)) return { mode, blockMs: 0, onExceed: { kind: 'delay', delayMs: 5_000, queueMax: 100 } }
    const lengths = this.#random.pick([[1], [1_500], [10_000], [900_000], [1, 1_500], [500, 10_000, 900_000]])
    const blockMs = this.#random.oneIn(4) ? (lengths.at(-1) ?? 0) : 0
    const blockLengths = blockMs > 0 && lengths.length > 1 ? lengths : undefined
    return { mode, blockMs, blockLengths, onExceed: { kind: 'deny' } }
  }

  #drawAny(name: string): Limit {
    const random = this.#random
    const algorithm = random.pick(this.#algorithms)
    const window = { kind: 'window', ms: random.pick([1_000, 30_000, 60_000, 3_600_000, dayMs]) } as const
    const size = random.oneIn(algorithm === 'sliding_log' ? 2 : 20) ? this.#edgeSize(algorithm) : random.integer(1, 60)
    const span: Span = algorithm === 'fixed_window' && random.oneIn(2) ? { kind: 'period', unit: 'day' } : window
    const capacity = algorithm === 'token_bucket' && random.oneIn(2) ? random.integer(1, 80) : size
    const unit = random.oneIn(3) ? { unit: random.pick(['requests', 'tokens']) } : {}
    return buildLimit({ name, algorithm, size, capacity, span, ...unit, ...this.#modes() })
  }

  #edgeSize(algorithm: Algorithm): number {
    if (algorithm === 'sliding_log') return this.#random.integer(61, 700)
    if (algorithm === 'token_bucket') return 90_000_000 - this.#random.integer(0, 9)
    return Number.MAX_SAFE_INTEGER - this.#random.integer(64, 999)
  }
}

function drawRequest(random: SeededRandom, limits: EditedLimits): LimitRequest {
  const chosen = names.filter(() => random.oneIn(2))
  const met = (chosen.length === 0 ? ['a' as const] : chosen).map((name) => limits.draw(name))
  return buildLimitRequest({
    scope: buildScope({ subject: random.pick(['acme', 'initech', 'ip:192.0.2.9']) }),
    cost: random.oneIn(30) ? 2 ** 53 - random.integer(1, 2_000) : random.integer(0, random.oneIn(6) ? 40 : 6),
    peek: random.oneIn(5),
    limits: met,
    idempotency: random.oneIn(8)
      ? {
          key: random.pick(['one', 'two']),
          id: `id-${random.integer(1, 1_000_000)}`,
          ...(random.oneIn(2) && { fingerprint: random.pick(['abcdefghijkl', '123456789012']) }),
        }
      : undefined,
    units: random.oneIn(3) ? new Map([['tokens', random.integer(0, 9)]]) : undefined,
    reservation:
      random.oneIn(3) && !met.some(chargesBeyond)
        ? { id: `r-${random.integer(1, 1_000_000_000)}`, ttlMs: random.pick([60_000, 900_000, dayMs]), context: '{}' }
        : undefined,
    slots: random.oneIn(3) ? { ms: random.pick([5_000, 30_000, 900_000]), taken: [] } : undefined,
  })
}

/** Given back once, or renewed, by the limits as they are by now. */
function drawRefund(random: SeededRandom, limits: EditedLimits, charged: Charged[]): Operation | undefined {
  const [back] = charged.splice(random.integer(0, charged.length - 1), 1)
  if (back === undefined) return undefined
  const { request, decision } = back
  const edited = request.limits.map(({ name }) => limits.draw(name))
  const isHeld = request.reservation !== undefined && request.units !== undefined
  const kind = random.oneIn(3) ? 'renew' : 'refund'
  const reservation = kind === 'renew' ? undefined : request.reservation
  // A log has one definition in a call.
  if (isHeld && request.limits.some(({ algorithm }, at) => [algorithm, edited[at]?.algorithm].includes('sliding_log')))
    return undefined
  return {
    kind,
    request: { ...request, limits: isHeld ? request.limits : edited, reservation },
    // A marker says when it was charged.
    charge: random.oneIn(9) && reservation === undefined ? { ...decision, atUs: 0 } : decision,
  }
}

/** Now and then, of one of the limits as they are now. */
const drawPause = (random: SeededRandom, limits: EditedLimits) => ({
  limit: limits.draw(random.pick(names)),
  scope: buildScope({ subject: random.pick(['acme', 'initech']) }),
  pauseMs: random.pick([1, 900, 30_000, 900_000, 31 * dayMs]),
})

/** Settled once, to more or less than it was charged, by the limits as they are by now. */
function drawSettlement(random: SeededRandom, limits: EditedLimits, charged: Charged[]) {
  const [settled] = charged.splice(random.integer(0, charged.length - 1), 1)
  if (settled === undefined) return undefined
  const { request, decision } = settled
  const edited = request.limits.map(({ name }) => limits.draw(name))
  const more = random.oneIn(20) ? 2 ** 53 - random.integer(1, 2_000) : random.integer(0, random.oneIn(3) ? 700 : 20)
  const units = random.oneIn(2) ? more : -random.integer(0, request.cost)
  return { request: { ...request, limits: edited, slots: undefined }, units, atUs: decision.atUs }
}

/** Zones and anchors are edited, and ingresses disagree about the time: boundaries lie anywhere around now. */
function drawBoundaries(random: SeededRandom, nowMs: number): PeriodBoundaries {
  const offsetMs = random.pick([0, 0, 0, 3_600_000, 20_700_000])
  const behindDays = random.pick([0, 0, 0, 0, 0, 1, -1, 4, -4])
  const startMs = Math.floor(nowMs - ((nowMs + offsetMs) % dayMs) - behindDays * dayMs)
  return [startMs, startMs + dayMs, startMs + 2 * dayMs + random.pick([0, 0, 3_600_000, -3_600_000])]
}

interface Walk {
  readonly random: SeededRandom
  readonly limits: EditedLimits
  readonly charged: Charged[]
  readonly lastMs: number
  /** Many calls in little time: logs fill their rings, buckets run dry. */
  readonly isDense: boolean
}

const denseSteps = [0, 0.001, 0.4, 1, 15] as const
/** Among them whole windows, and a microsecond less. */
const steps = [100, 999.999, 1_000, 5_000, 20_000, 29_999.999, 30_000, 60_000, 600_000] as const
const stepsBack = [-1, -1_500, -2_000, -2_001, -10_000] as const

function drawCall({ random, limits, charged, lastMs, isDense }: Walk): OperationsCall {
  const stepMs = random.oneIn(200)
    ? 30 * dayMs
    : random.pick(random.oneIn(20) ? stepsBack : isDense ? denseSteps : steps)
  const nowMs = Math.round((lastMs + stepMs) * 1_000) / 1_000
  limits.edit()
  const operations = Array.from({ length: random.integer(1, 8) }, (): Operation => {
    const refund = random.oneIn(6) ? drawRefund(random, limits, charged) : undefined
    return refund ?? { kind: 'decide', request: drawRequest(random, limits) }
  })
  return { operations, nowMs, boundaries: drawBoundaries(random, nowMs) }
}

const everyAlgorithm: readonly [Algorithm, ...Algorithm[]] = ['fixed_window', ...algorithms.slice(1)]

test.each<readonly [string, readonly [Algorithm, ...Algorithm[]]]>([
  ...algorithms.map((algorithm) => [algorithm, [algorithm]] as const),
  ['every algorithm', everyAlgorithm],
])('the script and its TypeScript twin agree in every field over a random walk: %s', async (_, drawn) => {
  const random = createSeededRandom()
  const redis = await openLimiterRedis(inject('redisUrl'))
  const script = createRedisEngine(redis)
  const model = createModelEngine()
  const charged: Charged[] = []
  const limits = new EditedLimits(random, drawn)
  let nowMs = 1_790_000_000_000
  for (let at = 0; at < callCount; at += 1) {
    const isDense = Math.floor(at / 100) % 2 === 1
    const call = drawCall({ random, limits, charged, lastMs: nowMs, isDense })
    nowMs = call.nowMs
    const result = await script.run(call)
    expect(result, `WEIR_TEST_SEED=${random.seed}, call ${at}`).toEqual(await model.run(call))
    for (const [number, { request }] of call.operations.entries()) {
      const outcome = result.outcomes[number]
      if (outcome !== undefined && 'charged' in outcome && outcome.charged === 'yes') {
        charged.unshift({ request, decision: outcome })
      }
    }
    charged.splice(rememberedMax)
    if (random.oneIn(10)) {
      const pause = { ...drawPause(random, limits), nowMs }
      expect(await script.pause(pause), `WEIR_TEST_SEED=${random.seed}, pause`).toBe(await model.pause(pause))
    }
    const settlement = random.oneIn(4) ? drawSettlement(random, limits, charged) : undefined
    if (settlement === undefined) continue
    const settleCall = { ...settlement, nowMs, boundaries: call.boundaries ?? drawBoundaries(random, nowMs) }
    const settled = await script.settle(settleCall)
    expect(settled, `WEIR_TEST_SEED=${random.seed}, settled after call ${at}`).toEqual(await model.settle(settleCall))
  }
  // One that has expired meanwhile is -2.
  for (const key of await script.keys()) expect(await redis.pttl(key), `${key} expires`).not.toBe(-1)
})
