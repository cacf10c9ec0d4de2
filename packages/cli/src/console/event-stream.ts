/** One event of a stream of server-sent events. */
export interface StreamEvent {
  /** `comment` for a line that is none of them. */
  readonly event: string
  readonly data: string
  /** Where to go on; undefined for what cannot be gone on from. */
  readonly id: string | undefined
}

/** A single event is some kilobytes. A server that sends more without an end sends no events. */
const eventMax = 1_000_000

function eventOf(block: string): StreamEvent {
  const found = { event: '', data: '', id: undefined as string | undefined }
  for (const line of block.split('\n')) {
    const [, name = '', value = ''] = /^([^:]*): ?(.*)$/.exec(line) ?? []
    if (name === 'event' || name === 'id') found[name] = value
    if (name === 'data') found.data += value
    if (name === '' && found.event === '') Object.assign(found, { event: 'comment', data: value })
  }
  return found
}

/** Reads the events of an answer until it ends. */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder()
  let read = ''
  for await (const part of body) {
    read += decoder.decode(part, { stream: true })
    if (read.length > eventMax) throw new Error('an event of the stream has no end')
    const blocks = read.split('\n\n')
    read = blocks.pop() ?? ''
    for (const block of blocks) yield eventOf(block)
  }
}
