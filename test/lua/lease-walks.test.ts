import { type LeaseServer, LeaseUse, walkLeases } from '@weir/client/testing/lease-walk.ts'
import { expect, test } from 'vitest'
import { leasingIngress } from '../support/leasing-ingress.ts'
import { createSeededRandom } from '../support/seeded-random.ts'

const windowMs = 4_000
const lifeMs = 2_000
/** Of plan `walk`, the size of its window; of plan `burst`, its burst and units a millisecond. */
const [size, burst, rate] = [1_500, 100, 0.01]

/** The ingress over a real Redis, with a clock that the walk moves. */
function serverOf(ingress: Awaited<ReturnType<typeof leasingIngress>>, plan: string) {
  const { clock, log, post, of } = ingress
  const uses = new LeaseUse()
  /** When each decision was really made. */
  const admittedMs: number[] = []
  const server: LeaseServer = {
    get ms() {
      return clock.ms
    },
    pass: (ms) => {
      clock.ms += ms
    },
    async play({ settle, lease }) {
      const wishes = lease.map(({ want }) => ({ ...of(plan), want }))
      const settlements = settle.map(({ id, subject, cost }) => ({ id, subject, cost }))
      const { body } = await post('/v1/leases', { settle: settlements, lease: wishes })
      return body.leases.map((one: Record<string, number | string>) => {
        if (one.count === 0) return { plainMs: Number(one.retry_ms ?? 1_000) }
        const windowEndMs = (Math.floor(clock.ms / windowMs) + 1) * windowMs
        const untilMs = Math.min(
          clock.ms + Number(one.ends_ms),
          plan === 'walk' ? windowEndMs : Number.POSITIVE_INFINITY,
        )
        uses.given(String(one.id), Number(one.count), untilMs)
        const { id, subject, count, cost, ends_ms: endsMs, life_ms: givenMs } = one
        return { id, subject, count, cost, endsMs, lifeMs: givenMs, limits: [], headers: [] }
      })
    },
    async check() {
      const { body } = await post('/v1/check', of(plan))
      if (body.allowed) admittedMs.push(clock.ms)
      return body.allowed
    },
  }
  const use = (id: string) => {
    uses.use(id, clock.ms)
    admittedMs.push(clock.ms)
  }
  /** By its records, as ClickHouse adds them up. */
  const counted = () => {
    const allowed = log.records.filter(({ outcome }) => outcome === 'allow')
    return allowed.reduce((sum, one) => sum + Number(one.count) + Number(one.count_adjustment ?? 0), 0)
  }
  const unused = () => {
    const settled = new Set(log.records.map(({ corrects }) => corrects))
    return uses.unused((id) => settled.has(id))
  }
  return { server, use, admittedMs, counted, unused }
}

async function walk(plan: string, steps: number) {
  const random = createSeededRandom()
  const { server, use, admittedMs, counted, unused } = serverOf(await leasingIngress(), plan)
  const question = { name: plan, body: {} }
  await walkLeases(server, use, question, random, steps)
  expect([random.seed, counted()]).toEqual([random.seed, admittedMs.length + unused()])
  return { seed: random.seed, admittedMs }
}

test('Applications that walk with units of real windows: none is exceeded, and what is counted is what was used and what was out', async () => {
  const { seed, admittedMs } = await walk('walk', 3_000)
  const windows = Map.groupBy(admittedMs, (ms) => Math.floor(ms / windowMs))
  const most = Math.max(...[...windows.values()].map(({ length }) => length))
  process.stdout.write(`  seed ${seed}: ${admittedMs.length} in ${windows.size} windows, at most ${most} of ${size}\n`)
  expect(most).toBeLessThanOrEqual(size)
})

test('Of a bucket at most what its burst has, and what flows back in a life, is used beyond its definition', async () => {
  const { seed, admittedMs } = await walk('burst', 2_000)
  /** The most that any stretch of time has beyond what flowed back in it: Kadane's algorithm. */
  let [beyond, most, beforeMs] = [0, 0, admittedMs[0] ?? 0]
  for (const ms of admittedMs) {
    beyond = Math.max(0, beyond - rate * (ms - beforeMs)) + 1
    most = Math.max(most, beyond)
    beforeMs = ms
  }
  process.stdout.write(
    `  seed ${seed}: ${admittedMs.length}, at most ${most.toFixed(1)} beyond the rate, burst ${burst}\n`,
  )
  expect(most).toBeLessThanOrEqual(2 * burst + rate * lifeMs)
})
