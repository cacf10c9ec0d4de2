import { randomUUID } from 'node:crypto'
import { decideModel, type ModelCell } from '@weir/core/algorithms/decide-model.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { PeriodBoundaries } from '@weir/core/limits/limit.ts'
import type { LimitRequest } from '@weir/core/limits/limit-store.ts'
import { decodeReply, encodeCall, type MalformedRequest } from '@weir/core/limits/script-codec.ts'
import { readDecideScript } from '@weir/redis/decide-script.ts'
import { limitKey } from '@weir/redis/keys.ts'
import type { Redis } from 'ioredis'

export interface EngineCall {
  readonly requests: readonly LimitRequest[]
  readonly nowMs: number
  /** For every limit with a calendar period in this call. */
  readonly boundaries?: PeriodBoundaries
}

export interface EngineResult {
  readonly outcomes: readonly (Decision | MalformedRequest)[]
  readonly rebased: number
}

/** One call decided by the script or by the model. Each engine has its own, empty state. */
export interface DecideEngine {
  readonly name: string
  decide(call: EngineCall): Promise<EngineResult>
}

export function createModelEngine(): DecideEngine {
  const cells = new Map<string, ModelCell>()
  return {
    name: 'model',
    async decide({ requests, nowMs, boundaries }) {
      let rebased = 0
      const outcomes = requests.map((request) => {
        const limits = request.limits.map((limit) => ({ limit, key: limitKey(limit, request.scope), boundaries }))
        const result = decideModel(cells, request, limits, nowMs)
        for (const [key, cell] of result.changes) cells.set(key, cell)
        rebased += result.rebased
        return result.decision
      })
      return { outcomes, rebased }
    },
  }
}

export const decideSource = readDecideScript(7).source

export interface RedisEngine extends DecideEngine {
  /** Every key it wrote, with its bytes and its expiry. */
  dump(): Promise<Map<string, string>>
  keys(): Promise<string[]>
}

/** Runs the script itself, under key names that no other test has. */
export function createRedisEngine(redis: Redis): RedisEngine {
  const run = randomUUID()
  const keys = () => redis.keys(`${run}*`)
  return {
    name: 'redis',
    async decide({ requests, nowMs, boundaries }) {
      const { keys, argv } = encodeCall(requests, {
        keyOf: (limit, scope) => `${run}${limitKey(limit, scope)}`,
        boundariesOf: () => boundaries,
        nowMs,
      })
      const reply = await redis.eval(decideSource, keys.length, ...keys, ...argv)
      const { outcomes, rebased } = decodeReply(reply, requests)
      return { outcomes, rebased }
    },
    keys,
    async dump() {
      const entries = (await keys()).sort().map(async (key) => {
        const [bytes, expiresMs] = [await redis.dumpBuffer(key), await redis.call('PEXPIRETIME', key)]
        return [key, `${bytes.toString('hex')} ${expiresMs}`] as const
      })
      return new Map(await Promise.all(entries))
    },
  }
}
