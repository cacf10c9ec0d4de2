import { pauseMsMax } from '@weir/core/limits/exceeding.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { ScopeValues } from '@weir/core/limits/limit-store.ts'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import type { Redis } from 'ioredis'
import type { ClusterConnection } from './cluster-connection.ts'
import { blockKey } from './keys.ts'
import { serverFinder } from './limit-connection.ts'
import { readScriptError } from './script-error.ts'
import { readScript, scriptTime } from './scripts.ts'

/** Pausing may wait longer than a decision, but its caller waits too. */
const answerMs = 1_000

interface PausesOptions {
  readonly redis: Redis | ClusterConnection
  /** Called when Redis refused a pause; not when it cannot be reached. */
  readonly onFault?: (error: unknown) => void
}

/** Returns what pauses limits in all processes that share the Redis. */
export function createPauses({ redis, onFault }: PausesOptions) {
  const { source } = readScript('pause')
  const serverOf = serverFinder(redis)
  const set = async (key: string, ms: number) =>
    Number(await serverOf(key).eval(source, 1, key, scriptTime(undefined), ms))
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
