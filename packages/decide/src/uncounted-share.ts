import type { DecisionSource } from '@weir/core/limits/decision.ts'

/** What was decided so far, by where it was; the numbers only grow. */
type Sources = Readonly<Record<DecisionSource, number>>

/** Long enough that one late call is no share, short enough that it is gone when somebody looks again. */
const windowMs = 300_000
const sampleMs = 10_000

const countsOf = ({ none, local, unavailable, ...others }: Sources) => {
  const without = local + unavailable
  return { without, all: Object.values(others).reduce((sum, count) => sum + count, without) }
}

/** The share of the decisions of the last five minutes that Redis did not count, of those that asked a limit. */
export class UncountedShare {
  readonly #sources: Sources
  readonly #samples = [{ without: 0, all: 0 }]

  constructor(sources: Sources) {
    this.#sources = sources
    setInterval(() => this.sample(), sampleMs).unref()
  }

  /** Called every ten seconds. */
  sample(): void {
    this.#samples.push(countsOf(this.#sources))
    if (this.#samples.length > windowMs / sampleMs) this.#samples.shift()
  }

  /** From 0 to 1; 0 without any decision. */
  get ratio(): number {
    const now = countsOf(this.#sources)
    const { without, all } = this.#samples[0] ?? now
    return now.all === all ? 0 : (now.without - without) / (now.all - all)
  }
}
