import { readScript } from '@weir/redis/scripts.ts'
import type { Redis } from 'ioredis'
import type { Contestant } from './contestant.ts'
import { chargeAll, limitsOf, openStore } from './weir.ts'

/** Redis 7 and above, which the benches run on. */
const redisMajor = 7

export const bySourceLabel = 'by EVAL'
export const byHashLabel = 'by EVALSHA'

/** The same store asking one by one, once as it is and once with every call changed to carry the whole script. */
export function evalContestants(redis: Redis, changed: Redis): Contestant[] {
  const { source } = readScript('decide', redisMajor)
  const call = changed.callBuffer.bind(changed)
  const bySource = (_command: string, _hash: string, ...rest: (string | number)[]) => call('eval', source, ...rest)
  Object.defineProperty(changed, 'callBuffer', { value: bySource })
  const limits = limitsOf('fixed_window', 2, 'eval')
  return [
    { label: byHashLabel, connection: redis },
    { label: bySourceLabel, connection: changed },
  ].map(({ label, connection }) => ({
    label,
    together: 1,
    limits: limits.length,
    keys: undefined,
    decide: chargeAll(label, openStore(connection), limits),
  }))
}
