import { setTimeout as pause } from 'node:timers/promises'

/** Repeats a step, after the pause that it returned, until `stopping` aborts. The step handles its own errors. */
export async function repeatUntilStopped(step: () => Promise<number>, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    const pauseMs = await step()
    await pause(pauseMs, undefined, { signal: stopping }).catch(() => undefined)
  }
}
