/** What a stopped clock needs of vitest's `vi`. */
interface FakeTimers {
  useFakeTimers(options: { toFake: ('setTimeout' | 'clearTimeout' | 'performance')[] }): unknown
  advanceTimersByTimeAsync(ms: number): Promise<unknown>
  getTimerCount(): number
}

/** Lets promises settle: an answer of a store, and all that is done with it. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Stops the clock that is never set, and its timers, until `vi.useRealTimers()`: time passes only by `pass`. */
export function createManualTime(vi: FakeTimers) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
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
