import { setTimeout as pause } from 'node:timers/promises'

/** Takes a step again and again, after the pause that it asked for, until it is stopped. The step handles its own errors. */
export async function repeatUntilStopped(step: () => Promise<number>, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    const pauseMs = await step()
    await pause(pauseMs, undefined, { signal: stopping }).catch(() => undefined)
  }
}
