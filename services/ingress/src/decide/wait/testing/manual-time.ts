import { onTestFinished, vi } from 'vitest'

/** Lets promises settle: an answer of a store, and all that is done with it. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Stops the clock that is never set, and its timers, until the end of a test: time passes only when told to. */
export function createManualTime() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  return {
    nowMs: () => performance.now(),
    /** Lets `ms` pass. Each timer runs at its time, and what follows from it settles before the next. */
    async pass(ms: number): Promise<void> {
      await settle()
      await vi.advanceTimersByTimeAsync(ms)
      await settle()
    },
    /** Timers that are set and have not run yet. */
    get timers(): number {
      return vi.getTimerCount()
    },
  }
}
