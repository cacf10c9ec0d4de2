import type { WriteStream } from 'node:tty'
import type { Progress } from '@weir/audit/progress.ts'

/** Of a command that nobody waits for. */
export const noProgress: Progress = { tell: () => undefined, end: () => undefined }

/** What takes less needs no word. */
const shownAfterMs = 1_000
const drawEveryMs = 200
const barWidth = 24

/** `[########----------------]  33%`. */
function barOf(share: number): string {
  const known = Math.min(1, Math.max(0, share))
  const done = Math.floor(known * barWidth)
  return ` [${'#'.repeat(done)}${'-'.repeat(barWidth - done)}] ${Math.floor(known * 100)}%`
}

/**
 * One line at the bottom of a terminal, from a second after the beginning on: what runs, a bar where it is known how
 * much there is, and for how long. Without a terminal there is none.
 */
export class ProgressLine implements Progress {
  readonly #output: WriteStream | undefined
  #name = ''
  #text = ''
  #share: number | undefined
  #begunMs = 0
  #drawing: NodeJS.Timeout | undefined
  #isShown = false

  constructor(output: WriteStream | undefined) {
    this.#output = output
  }

  begin(name: string): void {
    if (this.#output === undefined) return
    this.#name = name
    this.#begunMs = performance.now()
    this.#drawing = setInterval(() => this.#draw(), drawEveryMs)
    this.#drawing.unref()
    process.on('exit', this.end)
  }

  readonly tell = (text: string, share?: number): void => {
    this.#text = text
    this.#share = share
  }

  readonly end = (): void => {
    clearInterval(this.#drawing)
    this.hide()
  }

  /** Takes it away for what is written next; it comes again by itself. */
  hide(): void {
    if (this.#isShown) this.#output?.write('\r\u001b[K')
    this.#isShown = false
  }

  #draw(): void {
    const ms = performance.now() - this.#begunMs
    if (ms < shownAfterMs) return
    const what = this.#text === '' ? this.#name : `${this.#name}: ${this.#text}`
    const bar = this.#share === undefined ? '' : barOf(this.#share)
    const end = `${bar}  ${Math.floor(ms / 1_000)} s`
    const width = (this.#output?.columns ?? 80) - 1
    const line = `${[...what].slice(0, Math.max(0, width - end.length)).join('')}${end}`
    this.#output?.write(`\r${line.slice(0, width)}\u001b[K`)
    this.#isShown = true
  }
}
