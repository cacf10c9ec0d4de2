import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import type { LimitRequest } from '@weir/core/limits/limit-store.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import { LayeredStore } from '@weir/redis/layers/all-layers.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { Redis } from 'ioredis'
import { buildLimit } from '../support/builders/limit.ts'
import { startServer } from '../support/servers/start-server.ts'
import { bothWays, type Contestant, refuseToCount, sizeMax, windowMs } from './decide/contestant.ts'
import { type Cost, measure, warmUp } from './decide/measure.ts'
import { type BenchOptions, type BenchReport, spread } from './report.ts'

const msPerRun = 500
const warmUpMs = 500
/** Units that a process takes at once; 0 for no lease. */
const leases = [0, 10, 100, 1_000] as const

/**
 * One limit that every request meets, as `by: [global]` is, through all layers that stand before Redis in the ingress.
 */
function contestants(redis: Redis): Contestant[] {
  const common = { clock: systemClock, periodBoundaries: createBoundaryCache(), deadlineMs: 5_000 }
  const store = new LayeredStore(new RedisLimitStore({ redis, ...common }), { ...common, processes: () => 1 })
  return leases.flatMap((lease) => {
    const label = lease === 0 ? 'without a lease' : `lease ${lease}`
    const sizes = { size: sizeMax, capacity: sizeMax, span: { kind: 'window', ms: windowMs } } as const
    const limits = [buildLimit({ name: `hot-${lease}`, by: [{ kind: 'global' }], lease, ...sizes })]
    const request = (subject: string): LimitRequest => ({
      scope: { subject, keyId: 'key', ip: '192.0.2.1', route: 'GET /things', method: 'GET' },
      ...{ cost: 1, peek: false, limits, timeZone: 'UTC', anchor: 1 },
    })
    return bothWays({ label, limits: 1, keys: undefined }, async (subjects) => {
      for (const decision of await Promise.all(subjects.map((subject) => store.decide(request(subject))))) {
        if (decision.charged !== 'yes') refuseToCount(label, decision.reason)
      }
    })
  })
}

const columns: readonly { readonly title: string; readonly value: (cost: Cost) => number }[] = [
  { title: 'decisions/s', value: (cost) => cost.decisionsPerSecond },
  { title: 'Redis CPU µs', value: (cost) => cost.redisCpuUs },
  { title: 'Node CPU µs', value: (cost) => cost.nodeCpuUs },
]

/**
 * What a decision under one very hot fixed window costs Redis and the ingress, with leases of several sizes and
 * without.
 */
export async function run({ rounds, progress }: BenchOptions): Promise<BenchReport> {
  progress('starting Redis')
  const server = await startServer(redisServer)
  const limiter = connectRedis(server.address, { role: 'limiter', onError: () => {} })
  const monitor = new Redis(server.address)
  try {
    await new Promise((resolve) => limiter.once('ready', resolve))
    const all = contestants(limiter)
    for (const contestant of all) await warmUp(contestant, warmUpMs)
    const seen: ReadonlyMap<Contestant, Cost>[] = []
    for (let round = 1; round <= rounds; round += 1) {
      const costs = new Map<Contestant, Cost>()
      // Every second round goes backwards, so that no contestant always follows the same one.
      for (const contestant of round % 2 === 0 ? all.toReversed() : all) {
        costs.set(contestant, await measure(contestant, monitor, msPerRun))
      }
      seen.push(costs)
      progress(`round ${round} of ${rounds}`)
    }
    const valuesOf = (contestant: Contestant) =>
      columns.map(({ value }) =>
        spread(seen.flatMap((costs) => [...costs].flatMap(([one, cost]) => (one === contestant ? [value(cost)] : [])))),
      )
    return {
      name: 'lease: one Redis, one limit that all requests meet; per decision, median [min max]',
      tables: ([1, 16] as const).map((together) => ({
        title: together === 1 ? 'one by one' : `${together} at once, twice`,
        columns: columns.map(({ title }) => title),
        rows: all
          .filter((one) => one.together === together)
          .map((one) => ({ label: one.label, values: valuesOf(one) })),
      })),
      rows: [],
      ratios: [],
    }
  } finally {
    limiter.disconnect()
    monitor.disconnect()
    await server.close()
  }
}
