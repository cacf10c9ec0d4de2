import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { RunningLoad } from './drive-load.ts'

/** After a kill an answer comes within this time, or the outage counts to the end of it. */
const outageMaxMs = 90_000

/** Measures how long there were no decisions after each kill: from the kill to the first answer that Redis decided. */
export function watchOutages(load: RunningLoad) {
  let totalMs = 0
  let countedToMs = 0
  const open: Promise<void>[] = []
  return {
    /** Something that every decision needs was killed now. */
    begin() {
      const fromMs = load.progress.elapsedMs
      // What was under way at the kill may still be answered within a moment.
      const isBack = () => load.progress.lastDecidedMs > fromMs + 100
      const ended = waitUntil(isBack, { deadlineMs: outageMaxMs, everyMs: 20 }).then(() => {
        const toMs = load.progress.elapsedMs
        totalMs += Math.max(0, toMs - Math.max(fromMs, countedToMs))
        countedToMs = Math.max(countedToMs, toMs)
      })
      open.push(ended)
    },
    /** The time in all, on the load's clock, in which no decision could be made; outages that overlap count once. */
    async endMs() {
      await Promise.all(open)
      return totalMs
    },
  }
}
