import { segmentsIn } from '../format/segment-files.ts'

/**
 * Which segments of a directory are still needed, by whom is not asked: a record that Kafka does not have, or a sum
 * that is open.
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

  /** The segments before the one that is read, as far as nobody holds one, in order: they may be deleted. */
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
