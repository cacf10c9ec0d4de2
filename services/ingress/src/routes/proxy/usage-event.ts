/** An event that is longer is none that says a usage. */
const eventBytesMax = 65_536
const lineFeed = 0x0a
const none: Buffer = Buffer.alloc(0)
const option = Buffer.from(',"stream_options":{"include_usage":true}')

/** The body of a streamed chat that asks for its usage. `body` is JSON, an object with members. */
export function askingForUsage(body: Buffer): Buffer {
  const end = body.lastIndexOf('}')
  return Buffer.concat([body.subarray(0, end), option, body.subarray(end)])
}

/** The event that a chat ends with where it was asked for its usage: it has no choices. */
const isUsage = (event: Buffer) => /^data: ?\{(?=.*"usage":\s*\{).*"choices":\s*\[\]/s.test(event.toString('latin1'))

/**
 * Keeps the event with the usage from a client that did not ask for it. All else is passed on as it comes, but for an
 * event that is not whole, which waits for its end.
 */
export class UsageEventFilter {
  #begun = none

  /** What the client gets of all that has come. */
  pass(chunk: Buffer): Buffer {
    const bytes = this.#begun.length === 0 ? chunk : Buffer.concat([this.#begun, chunk])
    const shown: Buffer[] = []
    let from = 0
    for (let end = endOfEvent(bytes, from); end > 0; end = endOfEvent(bytes, from)) {
      const event = bytes.subarray(from, end)
      if (!isUsage(event)) shown.push(event)
      from = end
    }
    this.#begun = bytes.subarray(from)
    if (this.#begun.length > eventBytesMax) shown.push(this.rest())
    return shown.length === 1 ? (shown[0] ?? none) : Buffer.concat(shown)
  }

  /** What came last and has no end. */
  rest(): Buffer {
    const begun = this.#begun
    this.#begun = none
    return begun
  }
}

/** Where the next event begins: behind an empty line. 0 where this one is not whole. */
function endOfEvent(bytes: Buffer, from: number): number {
  for (let at = bytes.indexOf(lineFeed, from); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) {
    const next = bytes[at + 1] === 0x0d ? at + 2 : at + 1
    if (bytes[next] === lineFeed) return next + 1
  }
  return 0
}
