import type { QueueTime } from '../delay-queue.ts'

/** Time that passes only when told to. */
export interface ManualTime extends QueueTime {
  /** Lets `ms` pass. Each timer runs at its time, and what follows from it settles before the next. */
  pass(ms: number): Promise<void>
  /** Timers that are set and have not run yet. */
  readonly timers: number
}

/** Lets promises settle: an answer of a store, and all that is done with it. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

export function createManualTime(): ManualTime {
  let nowMs = 0
  const timers = new Set<{ readonly atMs: number; readonly run: () => void }>()
  return {
    nowMs: () => nowMs,
    later(ms, run) {
      const timer = { atMs: nowMs + ms, run }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    get timers() {
      return timers.size
    },
    async pass(ms) {
      const untilMs = nowMs + ms
      await settle()
      for (;;) {
        const [next] = [...timers].sort((a, b) => a.atMs - b.atMs)
        if (next === undefined || next.atMs > untilMs) break
        nowMs = Math.max(nowMs, next.atMs)
        timers.delete(next)
        next.run()
        await settle()
      }
      nowMs = untilMs
    },
  }
}
