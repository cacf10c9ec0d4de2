import { join } from 'node:path'
import { KeptPart, type Part, type ProcessContext } from './kept-part.ts'

export interface Supervisor {
  /** Starts parts side by side and waits until all are ready; throws if one of them cannot. */
  start(parts: readonly Part[], signal: AbortSignal): Promise<void>
  /** Stops these parts side by side, those that were started. */
  stop(names: readonly string[]): Promise<void>
  /** Of the parts that run now. */
  pids(): Record<string, number>
}

/** Keeps the parts of `weir up` running, each with a log of its own. */
export function createSupervisor(options: { readonly logDir: string } & Omit<ProcessContext, 'logFile'>): Supervisor {
  const kept = new Map<string, KeptPart>()
  return {
    async start(parts, signal) {
      const started = parts.map(
        (part) => new KeptPart(part, { ...options, logFile: join(options.logDir, `${part.name}.log`) }),
      )
      for (const one of started) kept.set(one.part.name, one)
      await Promise.all(started.map((one) => one.start(signal)))
    },
    async stop(names) {
      await Promise.all(names.map((name) => kept.get(name)?.stop()))
    },
    pids() {
      const running: Record<string, number> = {}
      for (const [name, { pid }] of kept) if (pid !== undefined) running[name] = pid
      return running
    },
  }
}
