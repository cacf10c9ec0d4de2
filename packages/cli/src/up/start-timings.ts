/** What a start spends its time on: when each step began, and how long it took. */
export class StartTimings {
  readonly #onStep: (running: readonly string[], ended: number) => void
  readonly #running = new Set<string>()
  readonly #steps: { readonly what: string; readonly fromMs: number; readonly tookMs: number }[] = []

  /** `onStep` is called whenever a step begins or ends. */
  constructor(onStep: (running: readonly string[], ended: number) => void = () => undefined) {
    this.#onStep = onStep
  }

  #tell(): void {
    this.#onStep([...this.#running], this.#steps.length)
  }

  /** Runs one step, which may run concurrently with others. Resolves and rejects as the step does. */
  async measure<T>(what: string, step: () => T | Promise<T>): Promise<T> {
    const fromMs = performance.now()
    this.#running.add(what)
    this.#tell()
    try {
      return await step()
    } finally {
      this.#steps.push({ what, fromMs, tookMs: performance.now() - fromMs })
      this.#running.delete(what)
      this.#tell()
    }
  }

  /** Returns a line for each step, by when it began, in seconds since the process began. */
  lines(): string[] {
    const seconds = (ms: number) => `${(ms / 1_000).toFixed(2)} s`.padStart(8)
    const steps = this.#steps.toSorted((a, b) => a.fromMs - b.fromMs)
    return steps.map(({ what, fromMs, tookMs }) => `${seconds(fromMs)} +${seconds(tookMs)}  ${what}`)
  }
}
