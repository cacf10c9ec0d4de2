import { setTimeout as pause } from 'node:timers/promises'
import { backoffMs } from '@weir/runtime/backoff.ts'
import type { Logger } from '@weir/runtime/logger.ts'

/** Repeats a step, after the pause that it returned, until `stopping` aborts. The step handles its own errors. */
export async function repeatUntilStopped(step: () => Promise<number>, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    const pauseMs = await step()
    await pause(pauseMs, undefined, { signal: stopping }).catch(() => undefined)
  }
}

/** Pauses between attempts while Redis or Kafka is unavailable. Well below the session timeout of 30 s. */
const pauses = { firstMs: 200, maxMs: 5_000 }

/**
 * Repeats a step that is safe to repeat until it succeeds. Rejects with the errors that `isFinal` selects, with what
 * `afterPause` rejects with, and when `stopping` aborts a pause.
 */
export async function repeatUntilDone(
  step: () => Promise<unknown>,
  around: {
    readonly what: string
    readonly isFinal?: (error: unknown) => boolean
    readonly afterPause?: () => Promise<void>
    readonly stopping: AbortSignal
    readonly log: Logger
  },
): Promise<void> {
  for (let failures = 1; ; failures += 1) {
    try {
      await step()
      return
    } catch (error) {
      if (around.isFinal?.(error)) throw error
      const pauseMs = backoffMs(failures, pauses)
      around.log.warn({ err: error, pauseMs }, `${around.what}, trying again`)
      await pause(pauseMs, undefined, { signal: around.stopping })
      await around.afterPause?.()
    }
  }
}
