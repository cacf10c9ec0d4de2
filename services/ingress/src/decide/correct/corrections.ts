import type { DecisionLog } from '../../ports.ts'
import { encodeCorrectionOpen } from './correction-record.ts'

/** More than one stalled write holds, and than one upstream fails in minutes; half a kilobyte each. */
const waitingMaxDefault = 10_000
/** How often a journal that took nothing is asked again. */
const againMs = 1_000
/** Given to it at a time: some milliseconds, so that no request waits for them. */
const atOnceMax = 500

export type Correction = Parameters<typeof encodeCorrectionOpen>[0]

/**
 * Corrections of what decisions were charged. Each is given to the journal until it stands there, and one that does is not given again; no
 * answer waits for it. What waits dies with the process.
 */
export interface Corrections {
  record(correction: Correction): void
  /** Since the process started; `lost` are those that there was no room for here. */
  readonly counters: { readonly recorded: number; readonly lost: number }
  /** Gives the journal what waits, for the last time. Says how many it did not take. */
  close(): number
}

interface Waiting {
  readonly subject: string
  readonly line: string
}

export function createCorrections(log: DecisionLog, waitingMax: number = waitingMaxDefault): Corrections {
  const waiting = new Set<Waiting>()
  const counters = { recorded: 0, lost: 0 }
  let timer: NodeJS.Timeout | undefined

  const hold = (one: Waiting) => {
    if (waiting.size >= waitingMax) {
      counters.lost += 1
      return
    }
    waiting.add(one)
    timer ??= setInterval(() => giveAll(atOnceMax), againMs).unref()
  }
  const give = (one: Waiting): boolean => {
    if (!log.append(one.subject, one.line, true)) return false
    // Not given again while a stalled disk may still take it.
    void log.landed().then((isThere) => {
      if (isThere) counters.recorded += 1
      else hold(one)
    })
    return true
  }
  const giveAll = (most: number) => {
    let given = 0
    for (const one of waiting) {
      if (given === most || !give(one)) return
      waiting.delete(one)
      given += 1
    }
    clearInterval(timer)
    timer = undefined
  }

  return {
    counters,
    record(correction) {
      const one = { subject: correction.subject, line: encodeCorrectionOpen(correction) }
      if (!give(one)) hold(one)
    },
    close() {
      giveAll(waitingMax)
      clearInterval(timer)
      return waiting.size
    },
  }
}
