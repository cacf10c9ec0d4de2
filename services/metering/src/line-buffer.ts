const closeBrace = 0x7d
const lineBreak = 0x0a
/** Digits of an offset, `}` and the line break. */
const endBytesMax = 18

/** The lines of one insert: records' bytes, with topic id, partition and offset before the closing brace. */
export class LineBuffer {
  readonly #splice: Buffer
  #bytes: Buffer
  #at = 0
  rows = 0

  /** `splice`: the text that is spliced in before the offset's digits. */
  constructor(splice: string, bytes: number) {
    this.#splice = Buffer.from(splice, 'latin1')
    this.#bytes = Buffer.allocUnsafeSlow(bytes)
  }

  /** Adds the bytes from `start` to before `end`, which leaves out the object's closing brace. */
  add(bytes: Buffer, start: number, end: number, position: number): void {
    const splice = this.#splice
    this.#reserve(end - start + splice.length + endBytesMax)
    const target = this.#bytes
    let at = this.#at + bytes.copy(target, this.#at, start, end)
    target.set(splice, at)
    at += splice.length
    // Writes the digits from the last one.
    let digits = 1
    for (let rest = position; rest >= 10; rest = Math.floor(rest / 10)) digits += 1
    let rest = position
    for (let digitAt = at + digits - 1; digitAt >= at; digitAt -= 1) {
      const next = Math.floor(rest / 10)
      target[digitAt] = 48 + (rest - next * 10)
      rest = next
    }
    at += digits
    target[at] = closeBrace
    target[at + 1] = lineBreak
    this.#at = at + 2
    this.rows += 1
  }

  get lines(): Buffer {
    return this.#bytes.subarray(0, this.#at)
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#at + bytes))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}
