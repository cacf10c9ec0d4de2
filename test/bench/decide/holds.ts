import { systemClock } from '@weir/core/clock.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { buildLimit } from '@weir/core/limits/testing/build-limit.ts'
import { RedisSettlements } from '@weir/redis/settlements.ts'
import type { Redis } from 'ioredis'
import { bothWays, type Contestant, refuseToCount, sizeMax, windowMs } from './contestant.ts'
import { openStore, requestOf } from './weir.ts'

export const [chargedLabel, heldLabel] = ['Weir 8 limits, charged', 'Weir 8 limits, held and settled'] as const

/** Half of them of a calendar month, whose counts say what is only held. */
const limitsOf = (prefix: string, unit?: string) =>
  Array.from({ length: 8 }, (_, at) =>
    buildLimit({
      name: `bench-${prefix}-${at}`,
      size: sizeMax,
      capacity: sizeMax,
      span: at < 4 ? { kind: 'period', unit: 'month' } : { kind: 'window', ms: windowMs },
      ...(unit !== undefined && { unit }),
    }),
  )

/** What a hold and its settlement cost beside a charge of the same limits. */
export function holdContestants(redis: Redis): Contestant[] {
  const store = openStore(redis)
  const settlements = new RedisSettlements({ redis, owner: 'bench', answerMs: 5_000 })
  const [plain, metered] = [limitsOf('charged'), limitsOf('held', 'tokens')]
  const charge = async (subjects: readonly string[]) => {
    const decisions = await Promise.all(subjects.map((subject) => store.decide(requestOf(subject, plain))))
    for (const { charged, reason } of decisions) if (charged !== 'yes') refuseToCount(chargedLabel, reason)
  }
  const holdAndSettle = async (subjects: readonly string[]) => {
    const held = subjects.map((subject) => ({ subject, id: uuidv7(systemClock.nowMs()) }))
    const decided = held.map(({ subject, id }) => {
      const reservation = { id, ttlMs: 900_000, context: '{"route":"POST /v1/answers","plan":"free","keyId":"key"}' }
      return store.decide({ ...requestOf(subject, metered), units: new Map([['tokens', 4_096]]), reservation })
    })
    for (const { charged, reason } of await Promise.all(decided)) {
      if (charged !== 'yes') refuseToCount(heldLabel, reason)
    }
    const units = new Map([['tokens', 812]])
    const settled = await Promise.all(held.map((one) => settlements.settle({ ...one, units })))
    for (const { kind } of settled) if (kind !== 'settled') refuseToCount(heldLabel, kind)
  }
  return [
    ...bothWays({ label: chargedLabel, limits: 8, keys: 'weir:1:{*}:bench-charged-*' }, charge),
    ...bothWays({ label: heldLabel, limits: 8, keys: 'weir:1:{*}:bench-held-*' }, holdAndSettle),
  ]
}
