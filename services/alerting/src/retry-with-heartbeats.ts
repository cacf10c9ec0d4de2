import { WeirError } from '@weir/core/errors.ts'
import { backoffMs } from '@weir/runtime/backoff.ts'
import type { Logger } from '@weir/runtime/logger.ts'

/** Pauses between attempts while Redis is unavailable. Well below the session timeout of 30 s. */
const pauses = { firstMs: 200, maxMs: 5_000 }

/**
 * Repeats a step that is safe to repeat until it succeeds, and sends a heartbeat after each pause, so that the
 * partition stays with this process. Rejects with Kafka's own faults: the consumer handles them, and a lost partition
 * must end the wait.
 */
export async function retryWithHeartbeats(
  step: () => Promise<void>,
  around: {
    readonly heartbeat: () => Promise<void>
    readonly pause: (ms: number) => Promise<unknown>
    readonly log: Logger
  },
): Promise<void> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await step()
    } catch (error) {
      if (error instanceof WeirError || error instanceof TypeError) throw error
      const pauseMs = backoffMs(failures, pauses)
      around.log.warn({ err: error, pauseMs }, 'step failed, trying again')
      await around.pause(pauseMs)
      await around.heartbeat()
    }
  }
}
