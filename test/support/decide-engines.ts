import { randomUUID } from 'node:crypto'
import { decideModel, type ModelCell, refundModel } from '@weir/core/algorithms/decide-model.ts'
import type { PeriodBoundaries } from '@weir/core/limits/limit.ts'
import type { LimitRequest } from '@weir/core/limits/limit-store.ts'
import { decodeReply, encodeCall, type Operation, type Outcome } from '@weir/core/limits/script-codec.ts'
import { readDecideScript } from '@weir/redis/decide-script.ts'
import { blockKey, limitKey, markerKey } from '@weir/redis/keys.ts'
import type { Redis } from 'ioredis'

interface CallTime {
  readonly nowMs: number
  /** For every limit with a calendar period in this call. */
  readonly boundaries?: PeriodBoundaries
}

export interface EngineCall extends CallTime {
  readonly requests: readonly LimitRequest[]
}

export interface OperationsCall extends CallTime {
  readonly operations: readonly Operation[]
}

export interface EngineResult {
  readonly outcomes: readonly Outcome[]
  readonly rebased: number
}

/** One call decided by the script or by the model. Each engine has its own, empty state. */
export interface DecideEngine {
  readonly name: string
  decide(call: EngineCall): Promise<EngineResult>
  /** The same for refunds among decisions. */
  run(call: OperationsCall): Promise<EngineResult>
}

/** Operations that only decide. */
const decideAll = ({ requests, ...time }: EngineCall): OperationsCall => ({
  operations: requests.map((request) => ({ kind: 'decide', request })),
  ...time,
})

export function createModelEngine(): DecideEngine {
  const cells = new Map<string, ModelCell>()
  const run = async ({ operations, nowMs, boundaries }: OperationsCall): Promise<EngineResult> => {
    let rebased = 0
    const nowUs = Math.round(nowMs * 1_000)
    const outcomes = operations.map((operation): Outcome => {
      const { request } = operation
      const limits = request.limits.map((limit) => ({ limit, key: limitKey(limit, request.scope), boundaries }))
      if (operation.kind === 'refund') {
        const changes = refundModel(cells, request, operation.charge, limits, nowUs)
        for (const [key, cell] of changes) cells.set(key, cell)
        return { refunded: changes.length > 0 }
      }
      const result = decideModel(cells, request, limits, nowUs)
      for (const [key, cell] of result.changes) cells.set(key, cell)
      rebased += result.rebased
      return result.decision
    })
    return { outcomes, rebased }
  }
  return { name: 'model', run, decide: (call) => run(decideAll(call)) }
}

export const decideSource = readDecideScript(7).source

export interface RedisEngine extends DecideEngine {
  /** Every key it wrote, with its bytes and its expiry. */
  dump(): Promise<Map<string, string>>
  keys(): Promise<string[]>
}

/** Runs the script itself, under key names that no other test has. */
export function createRedisEngine(redis: Redis): RedisEngine {
  const prefix = randomUUID()
  const keys = () => redis.keys(`${prefix}*`)
  const run = async ({ operations, nowMs, boundaries }: OperationsCall): Promise<EngineResult> => {
    const { keys, argv } = encodeCall(operations, {
      keyOf: (limit, scope) => `${prefix}${limitKey(limit, scope)}`,
      blockKeyOf: (limit, scope) => `${prefix}${blockKey(limit, scope)}`,
      markerKeyOf: (subject, key) => `${prefix}${markerKey(subject, key)}`,
      boundariesOf: () => boundaries,
      nowMs,
    })
    const reply = await redis.callBuffer('eval', decideSource, keys.length, ...keys, ...argv)
    const { outcomes, rebased } = decodeReply(reply, operations)
    return { outcomes, rebased }
  }
  return {
    name: 'redis',
    run,
    decide: (call) => run(decideAll(call)),
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
