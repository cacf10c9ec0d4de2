import { setTimeout as delay } from 'node:timers/promises'

/** Asks until the answer is neither undefined nor false, and returns it; undefined when the deadline has passed. */
export async function waitUntil<T>(
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  options: {
    /** How long to keep asking. */
    readonly deadlineMs: number
    /** Pause between two attempts; 50 ms unless given, short against any start of a server. */
    readonly everyMs?: number
    /** Ends the wait early, with the signal's reason as error. */
    readonly signal?: AbortSignal
  },
): Promise<T | undefined> {
  const endsAt = performance.now() + options.deadlineMs
  for (;;) {
    options.signal?.throwIfAborted()
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer
    if (performance.now() >= endsAt) return undefined
    await delay(options.everyMs ?? 50, undefined, options.signal === undefined ? {} : { signal: options.signal })
  }
}
