import { WeirError } from '@weir/core/errors.ts'

/** How a partition's owner shows that it is still there, and moves on. A batch is one, and so is a partition at its start. */
export interface Owner {
  heartbeat(): Promise<void>
  commit(nextOffset: string, metadata?: string): Promise<void>
  isStale(): boolean
}

/** Waits, in a test at once. Rejects when the process stops. */
export type Pause = (ms: number) => Promise<void>

/** First and longest pause between attempts while ClickHouse is away: nobody should wait longer once it is back. */
const retryFirstMs = 200
const retryMaxMs = 5_000

/** The pause before the attempt after so many failed ones. */
export const pauseAfter = (failures: number): number =>
  Math.min(retryMaxMs, retryFirstMs * 2 ** Math.min(failures - 1, 10))

/** Kafka not answering a heartbeat is no reason to leave work half done: whether the partition is still ours, the next commit shows. */
async function beat(owner: Owner): Promise<void> {
  try {
    await owner.heartbeat()
  } catch (error) {
    if (error instanceof WeirError && error.retryable && !owner.isStale()) return
    throw error
  }
}

/** Heartbeats while something is under way; `abort` is called when the partition is lost meanwhile. */
export async function whileBeating<T>(
  owner: Owner,
  options: { readonly beatMs: number; readonly pause: Pause },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const giveUp = new AbortController()
  let isDone = false
  const running = work(giveUp.signal).finally(() => {
    isDone = true
  })
  // Its rejection is told by the race or by the last line, not by the process.
  running.catch(() => undefined)
  try {
    for (;;) {
      await Promise.race([running, options.pause(options.beatMs)])
      if (isDone) return await running
      await beat(owner)
    }
  } catch (error) {
    giveUp.abort(error)
    throw error
  }
}

/** A pause in which heartbeats go on. */
export async function pauseBeating(
  owner: Owner,
  options: { readonly beatMs: number; readonly pause: Pause },
  ms: number,
): Promise<void> {
  for (let left = ms; left > 0; left -= options.beatMs) {
    await options.pause(Math.min(left, options.beatMs))
    await beat(owner)
  }
}
