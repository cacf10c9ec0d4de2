import { join } from 'node:path'
import { ManagedProcess, type ProcessContext, type ProcessDefinition } from './managed-process.ts'

interface SupervisorOptions extends Omit<ProcessContext, 'logFile'> {
  readonly logDir: string
}

/** Keeps the processes of `weir up` running, each with a log of its own. */
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #processes = new Map<string, ManagedProcess>()

  constructor(options: SupervisorOptions) {
    this.#options = options
  }

  /** Starts processes concurrently and waits until all are ready. Rejects if one of them cannot start. */
  async start(definitions: readonly ProcessDefinition[], signal: AbortSignal): Promise<void> {
    const started = definitions.map((definition) => {
      const logFile = join(this.#options.logDir, `${definition.name}.log`)
      const one = new ManagedProcess(definition, { ...this.#options, logFile })
      this.#processes.set(definition.name, one)
      return one
    })
    await Promise.all(started.map((one) => one.start(signal)))
  }

  /** Stops the named processes concurrently, those that were started. */
  async stop(names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => this.#processes.get(name)?.stop()))
  }

  /** The process ids of those that run now. */
  pids(): Record<string, number> {
    const running: Record<string, number> = {}
    for (const [name, { pid }] of this.#processes) if (pid !== undefined) running[name] = pid
    return running
  }
}
