import { connect, type Socket } from 'node:net'

/** One answer, whole. */
export interface RawAnswer {
  readonly status: number
  /** The `Weir-Decision` header. */
  readonly id: string | undefined
  readonly body: string
}

/**
 * One connection that is kept, with one request at a time, over plain sockets: a load that shares two cores with what
 * it loads must cost little. Once it has ended it waits to be opened again.
 */
export class LedgerConnection {
  readonly #port: number
  readonly #onIdle: () => void
  readonly #onGone: () => void
  #socket: Socket | undefined
  #received = ''
  #answered: ((answer: RawAnswer | undefined) => void) | undefined

  /** `onIdle`: connected, and nothing under way. `onGone`: not so any more, until the next `onIdle`. */
  constructor(port: number, on: { readonly onIdle: () => void; readonly onGone: () => void }) {
    this.#port = port
    this.#onIdle = on.onIdle
    this.#onGone = on.onGone
    this.openAgain()
  }

  /** The answer, or undefined if the connection ended before it was whole. Only while idle. */
  ask(request: Buffer): Promise<RawAnswer | undefined> {
    return new Promise((resolve) => {
      this.#answered = resolve
      this.#socket?.write(request)
    })
  }

  /** Does nothing while it is open or being opened. */
  openAgain(): void {
    if (this.#socket !== undefined) return
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true })
    this.#socket = socket
    socket.setEncoding('latin1')
    socket.once('connect', () => this.#onIdle())
    socket.on('data', (text: string) => this.#read(text))
    socket.on('error', () => undefined) // 'close' follows
    socket.once('close', () => {
      this.#received = ''
      this.#onGone()
      this.#finish(undefined)
      this.#socket = undefined
    })
  }

  #read(text: string): void {
    this.#received += text
    const answer = readAnswer(this.#received)
    if (answer === undefined) return
    this.#received = ''
    const ends = answer.head.includes('\r\nconnection: close')
    this.#finish(answer)
    if (ends) this.#socket?.destroy()
    else this.#onIdle()
  }

  #finish(answer: RawAnswer | undefined): void {
    const resolve = this.#answered
    this.#answered = undefined
    resolve?.(answer)
  }
}

/** Undefined while some of it is missing. Of a chunked body only the end is looked at. */
function readAnswer(text: string): (RawAnswer & { readonly head: string }) | undefined {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const head = text.slice(0, headEnd).toLowerCase()
  const body = text.slice(headEnd + 4)
  const length = /\r\ncontent-length: (\d+)/.exec(head)?.[1]
  const isWhole = length === undefined ? body.endsWith('0\r\n\r\n') : body.length >= Number(length)
  if (!isWhole) return undefined
  const id = /\r\nweir-decision: ([0-9a-f-]{36})/.exec(head)?.[1]
  return { status: Number(head.slice(9, 12)), id, body, head }
}
