import type { Logger } from './logger.ts'

/** How long a stop may take before the process exits anyway; below Kubernetes' and systemd's usual 30 and 90 s. */
const stopDeadlineMs = 20_000

/** The life of a process, from what it opens to its exit code. */
export type Run = ReturnType<typeof createRun>

/** Owns start and stop of a process: SIGTERM and SIGINT close everything in reverse order, within a deadline. */
export function createRun(log: Logger) {
  const owned: { name: string; close: () => unknown }[] = []
  const stopping = new AbortController()
  const { promise: stopped, resolve } = Promise.withResolvers<{ exitCode: number; why: string }>()
  const stop = (how: { exitCode: number; why: string }) => {
    stopping.abort(new Error('the process is stopping'))
    resolve(how)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop({ exitCode: 0, why: signal }))

  const fail = (error: unknown) => {
    // An error that the stop caused is no failure of its own.
    if (stopping.signal.aborted) return log.debug({ err: error }, 'aborted by the stop')
    log.fatal({ err: error }, 'failed')
    stop({ exitCode: 1, why: 'failure' })
  }
  process.on('uncaughtException', fail)
  process.on('unhandledRejection', fail)

  const closeAll = async () => {
    for (const { name, close } of owned.reverse()) {
      try {
        await close()
      } catch (error) {
        log.error({ err: error, part: name }, 'close failed')
      }
    }
  }

  return {
    /** Registers what was opened; it is closed in reverse order at the stop. */
    async own<T>(name: string, thing: T | Promise<T>, close: (thing: T) => unknown): Promise<T> {
      const opened = await thing
      owned.push({ name, close: () => close(opened) })
      return opened
    },
    /** Aborted when the stop begins: waits that could outlast it end. */
    stopping: stopping.signal,
    /** Ends the run from inside: everything is closed and the process exits with 1. */
    fail,
    /** Resolves when a signal came or something failed, after everything was closed in order. */
    async untilStopped(): Promise<{ readonly exitCode: number }> {
      const { exitCode, why } = await stopped
      log.info({ why }, 'stopping')
      const deadline = setTimeout(() => {
        log.error({ stopDeadlineMs }, 'stop took too long')
        process.exit(1)
      }, stopDeadlineMs)
      await closeAll()
      clearTimeout(deadline)
      log.info('stopped')
      return { exitCode }
    },
  }
}
