/** Upper bounds of buckets, in seconds, ascending. */
export const buckets = {
  /** Of a decision, and of what it waits for. */
  decision: [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
  /** Of requests over HTTP, as OpenTelemetry advises. */
  http: [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
  /** Of steps of the pipeline behind the decisions. */
  pipeline: [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300, 900],
} as const

/** Counts values by bucket, as plain numbers: to observe one costs some nanoseconds. */
export class Histogram {
  readonly bounds: readonly number[]
  /** A count for each bucket alone, one for values above all bounds, and the sum of all values. */
  readonly cells: Float64Array<ArrayBufferLike>

  /** `cells` are of the length that `cellsOf` returns, and may be shared with a thread that reads them. */
  constructor(
    bounds: readonly number[],
    cells: Float64Array<ArrayBufferLike> = new Float64Array(Histogram.cellsOf(bounds)),
  ) {
    this.bounds = bounds
    this.cells = cells
  }

  static cellsOf(bounds: readonly number[]): number {
    return bounds.length + 2
  }

  get count(): number {
    return this.cells.subarray(0, -1).reduce((sum, count) => sum + count, 0)
  }

  get sum(): number {
    return this.cells.at(-1) ?? 0
  }

  observe(value: number): void {
    const { bounds, cells } = this
    let at = 0
    while (at < bounds.length && value > (bounds[at] ?? 0)) at += 1
    cells[at] = (cells[at] ?? 0) + 1
    const sumAt = bounds.length + 1
    cells[sumAt] = (cells[sumAt] ?? 0) + value
  }
}
