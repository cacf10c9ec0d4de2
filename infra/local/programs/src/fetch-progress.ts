import type { Tell } from './program.ts'

const drawEveryMs = 200
const megabytes = (bytes: number) => Math.round(bytes / 1e6)

/** Says once of each thing that it is being fetched. */
export function inLines(report: (line: string) => void): Tell {
  const said = new Set<string>()
  return (what, _, bytesAll) => {
    if (!said.has(what)) report(`fetching ${what}${bytesAll < 1e6 ? '' : ` (${megabytes(bytesAll)} MB)`}, once`)
    said.add(what)
  }
}

/** What is being fetched: on a terminal one line that is drawn again, elsewhere a line for each thing that begins. */
export class FetchProgress {
  readonly #stream: NodeJS.WriteStream
  readonly #startedAt = performance.now()
  readonly #fetched = new Map<string, { bytes: number; bytesAll: number }>()
  readonly #timer: NodeJS.Timeout | undefined
  readonly #lines = inLines((line) => this.#say(line))

  constructor(stream: NodeJS.WriteStream, terminal = 'dumb') {
    this.#stream = stream
    const isSeen = stream.isTTY && terminal !== 'dumb'
    if (isSeen) this.#timer = setInterval(() => this.#draw(), drawEveryMs)
  }

  readonly tell: Tell = (what, bytes, bytesAll) => {
    if (this.#timer === undefined) this.#lines(what, bytes, bytesAll)
    this.#fetched.set(what, { bytes, bytesAll })
  }

  end(line: string): void {
    clearInterval(this.#timer)
    if (this.#timer !== undefined) this.#stream.write('\r\u001B[K')
    const bytes = [...this.#fetched.values()].reduce((sum, one) => sum + one.bytes, 0)
    this.#say(`${line} (${megabytes(bytes)} MB fetched in ${this.#seconds()} s)`)
  }

  #seconds = () => Math.round((performance.now() - this.#startedAt) / 1_000)

  #say(line: string): void {
    this.#stream.write(`${line.replace(/^/gm, 'weir: ')}\n`)
  }

  #draw(): void {
    const parts = [...this.#fetched].map(([what, { bytes, bytesAll }]) => {
      const all = megabytes(bytesAll)
      return bytes < bytesAll ? `${what} ${megabytes(bytes)} of ${all} MB` : undefined
    })
    const text = `weir: installing  ${[...parts.filter(Boolean), `${this.#seconds()} s`].join(', ')}`
    this.#stream.write(`\r${text.slice(0, (this.#stream.columns ?? 80) - 1)}\u001B[K`)
  }
}
