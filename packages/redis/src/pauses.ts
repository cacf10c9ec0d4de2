import { pauseMsMax } from '@weir/core/limits/exceeding.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { ScopeValues } from '@weir/core/limits/limit-store.ts'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import type { Redis } from 'ioredis'
import type { ClusterConnection } from './cluster-connection.ts'
import { blockKey } from './keys.ts'
import { serverFinder } from './limit-connection.ts'
import { readScriptError } from './script-error.ts'
import { readScript } from './scripts.ts'

/** Pausing may wait longer than a decision, but its caller waits too. */
const answerMsDefault = 1_000

export interface PausesOptions {
  readonly redis: Redis | ClusterConnection
  readonly answerMs?: number
  /** Hears why Redis refused a pause; that it cannot be reached is no such reason. */
  readonly onFault?: (error: unknown) => void
  /** A test's time for the script, in milliseconds; undefined for Redis's clock. */
  readonly now?: () => number | undefined
}

/** Returns what pauses limits in all processes that share the Redis. */
export function createPauses(options: PausesOptions) {
  const { redis, answerMs = answerMsDefault, onFault, now = () => undefined } = options
  const { source } = readScript('pause')
  const serverOf = serverFinder(redis)
  const set = async (key: string, ms: number) => {
    const nowMs = now()
    const time = nowMs === undefined ? '' : String(Math.round(nowMs * 1_000))
    return Number(await serverOf(key).eval(source, 1, key, time, ms))
  }
  return {
    /**
     * Pauses a limit with `onExceed: delay`. A pause that is set is only ever lengthened. Resolves to the milliseconds
     * until its end, or to undefined when Redis did not answer: it may be set or not, and asking again is safe.
     */
    async pause(limit: Limit, scope: ScopeValues, ms: number): Promise<number | undefined> {
      if (!Number.isSafeInteger(ms) || ms < 1 || ms > pauseMsMax) throw new RangeError(`a pause of ${ms} ms`)
      const paused = set(blockKey(limit, scope), ms).catch((error: unknown) => {
        const { code } = readScriptError(error)
        if (code !== 'CONNECTION' && code !== 'NOT_SENT') onFault?.(error)
        return undefined
      })
      return await withTimeout(paused, answerMs, undefined)
    },
  }
}
