import { WeirError } from '@weir/core/errors.ts'
import type { Logger } from '@weir/runtime/logger.ts'

/** First and longest pause between attempts while Redis is away. Well below the session timeout of 30 s. */
const retryFirstMs = 200
const retryMaxMs = 5_000

/**
 * Repeats a step that is safe to repeat until it succeeds, and keeps the partition meanwhile. Kafka's own faults are passed
 * on: the consumer knows what to do about them, and a lost partition must end the wait.
 */
export async function patiently(
  step: () => Promise<void>,
  around: {
    readonly heartbeat: () => Promise<void>
    readonly pause: (ms: number) => Promise<unknown>
    readonly log: Logger
  },
): Promise<void> {
  for (let pauseMs = retryFirstMs; ; pauseMs = Math.min(pauseMs * 2, retryMaxMs)) {
    try {
      return await step()
    } catch (error) {
      if (error instanceof WeirError || error instanceof TypeError) throw error
      around.log.warn({ err: error, pauseMs }, 'step failed, trying again')
      await around.pause(pauseMs)
      await around.heartbeat()
    }
  }
}
