import { ManagedProcess, type ProcessContext, type ProcessDefinition } from '@weir/cli/up/managed-process.ts'

/**
 * A part that its supervisor starts again when it dies, as in production, and that a test can hold down, or have
 * started with more variables for a while.
 */
export class StackPart {
  readonly #context: ProcessContext
  #base: ProcessDefinition
  #kept: ManagedProcess
  #next: Readonly<Record<string, string>>[] = []

  constructor(base: ProcessDefinition, context: ProcessContext) {
    this.#base = base
    this.#context = context
    this.#kept = new ManagedProcess(this.#part(), context)
  }

  get base(): ProcessDefinition {
    return this.#base
  }

  get pid(): number | undefined {
    return this.#kept.pid
  }

  /** Whether it does its work, in another process than that. */
  async isBackAfter(pid: number | undefined): Promise<boolean> {
    return this.pid !== undefined && this.pid !== pid && (await this.base.ready())
  }

  start(signal: AbortSignal): Promise<void> {
    return this.#kept.start(signal)
  }

  kill(signal: NodeJS.Signals): void {
    const { pid } = this
    if (pid !== undefined) process.kill(pid, signal)
  }

  killInto(environments: readonly Readonly<Record<string, string>>[]): void {
    this.#next = [...environments]
    this.kill('SIGKILL')
  }

  async hold(): Promise<void> {
    this.kill('SIGKILL')
    await this.#kept.stop()
  }

  async release(signal: AbortSignal): Promise<void> {
    this.#kept = new ManagedProcess(this.#part(), this.#context)
    await this.#kept.start(signal)
  }

  /** Stops it as a service manager does, and starts it as another program. */
  async replace(base: ProcessDefinition, signal: AbortSignal): Promise<void> {
    await this.#kept.stop()
    this.#base = base
    await this.release(signal)
  }

  stop(): Promise<void> {
    this.kill('SIGCONT')
    return this.#kept.stop()
  }

  /** The supervisor reads `env` at each start. */
  #part(): ProcessDefinition {
    const takeNext = () => this.#next.shift()
    const { base } = this
    return {
      ...base,
      get env() {
        return { ...base.env, ...takeNext() }
      },
    }
  }
}
