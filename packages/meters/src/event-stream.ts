/** What is read of an event stream, in the order in which it comes. */
export interface EventReader {
  /** A piece of the event's data. */
  data(piece: Buffer): void
  /** The event is over; `name` as the stream gave it, `message` where it did not. */
  ended(name: string): void
}

const lineFeed = 0x0a
const carriageReturn = 0x0d
/** A field's name, or an event's, that is longer is none that anybody asks for. */
const keptBytesMax = 256
const newLine = Buffer.from('\n')

/**
 * Takes an event stream (WHATWG HTML, server-sent events) apart as it comes. Nothing of it is kept but the beginning of
 * a line that is no data. A line ends with CR, LF or both.
 */
export class EventStream {
  readonly #reader: EventReader
  /** What the line begins with, as Latin-1, as long as it is not known to be data. */
  #begin = ''
  #isData = false
  #hasData = false
  /** Whether the last byte was a CR: a LF right behind it belongs to it. */
  #isAfterReturn = false
  #name = ''

  constructor(reader: EventReader) {
    this.#reader = reader
  }

  /** Whether an event is over, and nothing of the next one has come. */
  get isBetweenEvents(): boolean {
    return this.#begin === '' && !this.#isData && !this.#hasData && this.#name === '' && !this.#isAfterReturn
  }

  write(chunk: Buffer): void {
    const [feed, back] = [new NextByte(chunk, lineFeed), new NextByte(chunk, carriageReturn)]
    let at = 0
    while (at < chunk.length) {
      if (this.#isAfterReturn && chunk[at] === lineFeed) at += 1
      this.#isAfterReturn = false
      if (at === chunk.length) return
      const end = Math.min(feed.from(at), back.from(at))
      this.#piece(chunk, at, end)
      if (end === chunk.length) return
      this.#isAfterReturn = chunk[end] === carriageReturn
      this.#endLine()
      at = end + 1
    }
  }

  /** A part of a line. */
  #piece(chunk: Buffer, from: number, end: number): void {
    let at = from
    if (!this.#isData) {
      const wanted = fieldLength - this.#begin.length
      if (wanted > 0) {
        const taken = Math.min(end, from + wanted)
        this.#begin += chunk.toString('latin1', from, taken)
        at = taken
      }
      if (this.#begin === 'data:') this.#beginData()
      else if (this.#begin.length < keptBytesMax)
        this.#begin += chunk.toString('latin1', at, Math.min(end, at + keptBytesMax))
    }
    if (this.#isData && at < end) this.#reader.data(chunk.subarray(at, end))
  }

  /** A blank behind the colon belongs to it, and means nothing in JSON. */
  #beginData(): void {
    if (this.#hasData) this.#reader.data(newLine)
    this.#isData = true
    this.#hasData = true
  }

  #endLine(): void {
    const line = this.#begin
    const wasData = this.#isData
    this.#begin = ''
    this.#isData = false
    if (wasData) return
    if (line.startsWith('event:')) this.#name = line.slice('event:'.length).replace(/^ /, '')
    if (line !== '') return
    if (this.#hasData) this.#reader.ended(this.#name === '' ? 'message' : this.#name)
    this.#hasData = false
    this.#name = ''
  }
}

const fieldLength = 'data:'.length

/** The next byte of a kind in a chunk, looked for once: a chunk may have none. */
class NextByte {
  readonly #chunk: Buffer
  readonly #byte: number
  #at = -1

  constructor(chunk: Buffer, byte: number) {
    this.#chunk = chunk
    this.#byte = byte
  }

  from(at: number): number {
    if (this.#at < at) {
      const found = this.#chunk.indexOf(this.#byte, at)
      this.#at = found < 0 ? this.#chunk.length : found
    }
    return this.#at
  }
}
