import { segmentsIn } from '../format/segment-files.ts'

/**
 * Counts what each segment of a directory is still needed for: records that Kafka does not have, and open sums.
 */
export class SegmentRefs {
  readonly #directory: string
  readonly #holds = new Map<number, number>()
  #first: number

  constructor(directory: string) {
    this.#directory = directory
    this.#first = segmentsIn(directory)[0] ?? 1
  }

  hold(segment: number): void {
    this.#holds.set(segment, (this.#holds.get(segment) ?? 0) + 1)
  }

  release(segment: number): void {
    const holds = this.#holds.get(segment) ?? 0
    if (holds > 1) this.#holds.set(segment, holds - 1)
    else this.#holds.delete(segment)
  }

  /** The oldest segment that is not given up. */
  get first(): number {
    return this.#first
  }

  /** Those on disk. */
  segments(): number[] {
    return segmentsIn(this.#directory).filter((segment) => segment >= this.#first)
  }

  /** The segments before the one that is read, up to the first that is held, in order: they may be deleted. */
  free(reading: number): number[] {
    const all = this.segments().filter((segment) => segment < reading)
    const held = all.findIndex((segment) => this.#holds.has(segment))
    return held === -1 ? all : all.slice(0, held)
  }

  /** It is deleted. */
  giveUp(segment: number): void {
    this.#first = segment + 1
  }
}
