import { randomUUID } from 'node:crypto'
import {
  decideModel,
  type ModelCell,
  pauseModel,
  refundModel,
  type SettledState,
  settleModel,
} from '@weir/core/algorithms/decide-model.ts'
import type { Limit, PeriodBoundaries } from '@weir/core/limits/limit.ts'
import { costOf, holdMsOf, type LimitRequest, type ScopeValues } from '@weir/core/limits/limit-store.ts'
import {
  type CallParts,
  decodeReply,
  encodeCall,
  type Operation,
  type Outcome,
  type SettlementLimit,
} from '@weir/core/limits/script-codec.ts'
import { blockKey, limitKey, markerKey, settlementKey, tallyKey, treeSubject } from '@weir/redis/keys.ts'
import { readScript } from '@weir/redis/scripts.ts'
import { encodeReplacements } from '@weir/redis/settlement-calls.ts'
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

/** A request that was charged at `atUs` is charged so many units more, or less below 0, on all of its limits. */
export interface SettleCall extends CallTime {
  readonly request: LimitRequest
  readonly units: number
  readonly atUs: number
}

/** How long the limit denies, whatever its capacity. */
export interface PauseCall {
  readonly limit: Limit
  readonly scope: ScopeValues
  readonly pauseMs: number
  readonly nowMs: number
}

/** One call decided by the script or by the model. Each engine has its own, empty state. */
export interface DecideEngine {
  readonly name: string
  decide(call: EngineCall): Promise<EngineResult>
  /** The same for refunds among decisions. */
  run(call: OperationsCall): Promise<EngineResult>
  settle(call: SettleCall): Promise<readonly SettledState[]>
  /** Resolves to the milliseconds until its end. */
  pause(call: PauseCall): Promise<number>
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
      if (operation.kind !== 'decide') {
        const changes = refundModel(cells, request, operation.charge, limits, nowUs, operation.kind === 'renew')
        for (const [key, cell] of changes) cells.set(key, cell)
        return { refundedAtUs: changes.length > 0 ? nowUs : 0 }
      }
      const result = decideModel(cells, request, limits, nowUs)
      for (const [key, cell] of result.changes) cells.set(key, cell)
      rebased += result.rebased
      return result.decision
    })
    return { outcomes, rebased }
  }
  const settle = async ({ nowMs, boundaries, ...change }: SettleCall) => {
    const { request } = change
    const limits = request.limits.map((limit) => ({ limit, key: limitKey(limit, request.scope), boundaries }))
    const { changes, states } = settleModel(cells, limits, change, Math.round(nowMs * 1_000))
    for (const [key, cell] of changes) cells.set(key, cell)
    return states
  }
  const pause = async ({ limit, scope, pauseMs, nowMs }: PauseCall) => {
    const { changes, leftMs } = pauseModel(cells, limitKey(limit, scope), pauseMs, Math.round(nowMs * 1_000))
    for (const [key, cell] of changes) cells.set(key, cell)
    return leftMs
  }
  return { name: 'model', run, decide: (call) => run(decideAll(call)), settle, pause }
}

const settleSource = readScript('settle').source
const pauseSource = readScript('pause').source
export const decideSource = readScript('decide', 7).source

export interface RedisEngine extends DecideEngine {
  /** Every key it wrote, with its bytes and its expiry. */
  dump(): Promise<Map<string, string>>
  keys(): Promise<string[]>
}

/** Runs the script itself, under key names that no other test has. */
export function createRedisEngine(redis: Redis): RedisEngine {
  const prefix = randomUUID()
  const keys = () => redis.keys(`${prefix}*`)
  const partsOf = (nowMs: number, boundaries: PeriodBoundaries | undefined): CallParts => ({
    keyOf: (limit, scope) => `${prefix}${limitKey(limit, scope)}`,
    blockKeyOf: (limit, scope) => `${prefix}${blockKey(limit, scope)}`,
    markerKeyOf: (scope, key) => `${prefix}${markerKey(scope, key)}`,
    settlementKeyOf: ({ scope }, { id }) => `${prefix}${settlementKey(treeSubject(scope), id)}`,
    tallyKeyOf: (request) => `${prefix}${tallyKey(request)}`,
    markersMax: 1_000_000,
    boundariesOf: () => boundaries,
    nowMs,
  })
  const run = async ({ operations, nowMs, boundaries }: OperationsCall): Promise<EngineResult> => {
    const { keys, argv } = encodeCall(operations, partsOf(nowMs, boundaries))
    const reply = await redis.callBuffer('eval', decideSource, keys.length, ...keys, ...argv)
    const { outcomes, rebased } = decodeReply(reply, operations)
    return { outcomes, rebased }
  }
  const settle = async ({ request, nowMs, boundaries, units, atUs }: SettleCall) => {
    const peek = { kind: 'decide', request: { ...request, peek: true, idempotency: undefined } } as const
    const limits = request.limits.map((limit): SettlementLimit => {
      const alone = { ...peek, request: { ...peek.request, limits: [limit] } }
      const [, definitions] = encodeCall([alone], partsOf(nowMs, boundaries)).argv
      return [limit.name, limit.capacity, `${prefix}${limitKey(limit, request.scope)}`, definitions.slice(1, -1)]
    })
    const marker = `${prefix}${randomUUID()}`
    await redis.set(marker, 'open')
    const [before, after] = [Buffer.from('open'), Buffer.from('was')]
    const changes = request.limits.map((limit) => {
      const held = costOf(limit, request)
      return holdMsOf(limit, request) === undefined ? units : [held, Math.max(0, held + units)]
    })
    const correction = { limits, changes, untilMs: Math.floor(nowMs), repeatedMs: 0, atUs }
    const { keys, argv } = encodeReplacements([{ key: marker, before, after, correction }])
    const time = String(Math.round(nowMs * 1_000))
    const replies = await redis.callBuffer('eval', settleSource, keys.length, ...keys, time, ...argv)
    await redis.del(marker)
    const [reply] = Array.isArray(replies) ? replies : []
    if (!Buffer.isBuffer(reply)) throw new Error(`settle.lua found another marker, or failed: ${reply}`)
    return request.limits.map((_, at): SettledState => {
      const number = (which: number) => reply.readDoubleBE(8 * (1 + at * 4 + which))
      return { changed: number(0) === 1, used: number(1), remaining: number(2), resetMs: number(3) }
    })
  }
  const pause = async ({ limit, scope, pauseMs, nowMs }: PauseCall) => {
    const key = `${prefix}${blockKey(limit, scope)}`
    return Number(await redis.eval(pauseSource, 1, key, String(Math.round(nowMs * 1_000)), pauseMs))
  }
  return {
    name: 'redis',
    run,
    settle,
    pause,
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
