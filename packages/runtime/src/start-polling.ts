import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from './logger.ts'
import type { Run } from './run.ts'
import { withTimeout } from './with-timeout.ts'

/** What a server that is asked again and again said last. */
export interface Polled<T> {
  /** Undefined before the first answer, and after a question that failed or is late. */
  readonly answer: T | undefined
  /** Why the last question has no answer. */
  readonly problem: string | undefined
}

/**
 * Asks until the service stops, one question at a time, so that a scrape shows the last answer and waits for no server.
 * The log has the reason of a failure once in a row.
 */
export function startPolling<T>(
  what: string,
  question: { readonly everyMs: number; readonly deadlineMs: number; readonly ask: () => Promise<T> },
  { run, log }: { readonly run: Pick<Run, 'stopping'>; readonly log: Logger },
): Polled<T> {
  const { everyMs, deadlineMs, ask } = question
  const polled: { answer: T | undefined; problem: string | undefined } = { answer: undefined, problem: undefined }
  const fail = (problem: string) => {
    if (problem !== polled.problem && !run.stopping.aborted) log.warn({ what, problem }, 'metric unavailable')
    Object.assign(polled, { answer: undefined, problem })
  }
  const askOnce = async () => {
    try {
      Object.assign(polled, { answer: await ask(), problem: undefined })
    } catch (error) {
      fail(error instanceof Error ? error.message : String(error))
    }
    return true
  }
  const step = async () => {
    const asked = askOnce()
    if (await withTimeout(asked, deadlineMs, false)) return
    fail(`no response within ${deadlineMs} ms`)
    await asked // nothing is asked beside it, and a late answer is one
  }
  const repeat = async () => {
    while (!run.stopping.aborted) {
      await step()
      await pause(everyMs, undefined, { signal: run.stopping }).catch(() => undefined)
    }
  }
  void repeat()
  return polled
}
