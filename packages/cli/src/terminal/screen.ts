import { emitKeypressEvents } from 'node:readline'
import type { ReadStream, WriteStream } from 'node:tty'
import { styleText } from 'node:util'

/** A terminal that can be drawn on and typed into. */
export interface Terminal {
  readonly input: ReadStream
  readonly output: WriteStream
}

/** Returns the terminal of this process; undefined where input or output is none, or one that only takes lines. */
export function findTerminal(environment: Readonly<Record<string, string | undefined>>): Terminal | undefined {
  const { stdin: input, stdout: output } = process
  const { TERM: kind = 'dumb' } = environment
  return input.isTTY && output.isTTY && kind !== 'dumb' ? { input, output } : undefined
}

/** A key as Node names it: `up`, `return`, `q`; `text` is what it types, if it types something. */
export interface Key {
  readonly name: string
  readonly text: string
}

/** Alternate screen, no cursor, and lines that are too long are cut instead of wrapped; and back. */
const [enter, leave] = ['\u001b[?1049h\u001b[?25l\u001b[?7l', '\u001b[?7h\u001b[?25h\u001b[?1049l']

/** A stop by Ctrl-Z takes effect within this, or never: a session without job control ignores it. */
const stoppedWithinMs = 50

/**
 * Draws whole screens on a terminal, and reads keys.
 *
 * Promises: the terminal is as before after `close`, after the end of the process by an error, by `process.exit` or by
 * SIGQUIT, and while it is stopped by Ctrl-Z; after `fg` and after a change of its size the screen is drawn again.
 * Ctrl-C, Ctrl-Z and Ctrl-\ are signals, as without a screen.
 */
export class Screen {
  readonly #terminal: Terminal
  readonly #draw: (columns: number, rows: number) => readonly string[]
  readonly #onKey: (key: Key) => void
  #isOpen = false
  #last = ''
  readonly #listeners = {
    keypress: (text: string | undefined, key: { name?: string; ctrl?: boolean; meta?: boolean }) =>
      this.#press(text ?? '', key),
    stop: () => this.#stop(),
    goOn: () => this.#resume(),
    resize: () => this.draw(),
    quit: () => this.#end('SIGQUIT'),
    exit: () => this.#leave(),
  }

  constructor(
    terminal: Terminal,
    draw: (columns: number, rows: number) => readonly string[],
    onKey: (key: Key) => void,
  ) {
    this.#terminal = terminal
    this.#draw = draw
    this.#onKey = onKey
  }

  open(): void {
    const { input, output } = this.#terminal
    const { keypress, stop, goOn, resize, quit, exit } = this.#listeners
    emitKeypressEvents(input)
    input.on('keypress', keypress)
    output.on('resize', resize)
    process.on('SIGTSTP', stop)
    process.on('SIGCONT', goOn)
    process.on('SIGQUIT', quit)
    process.on('exit', exit)
    this.#resume()
  }

  close(): void {
    const { input, output } = this.#terminal
    const { keypress, stop, goOn, resize, quit, exit } = this.#listeners
    this.#leave()
    input.off('keypress', keypress).pause()
    output.off('resize', resize)
    process.off('SIGTSTP', stop).off('SIGCONT', goOn).off('SIGQUIT', quit).off('exit', exit)
  }

  /** Draws what differs from what is there. */
  draw(): void {
    if (!this.#isOpen) return
    const { columns, rows } = this.#terminal.output
    const lines = this.#draw(columns, rows).slice(0, rows)
    const frame = `\u001b[H${lines.map((line) => `\u001b[K${line}`).join('\r\n')}\u001b[J`
    if (frame === this.#last) return
    this.#last = frame
    this.#terminal.output.write(frame)
  }

  #resume(): void {
    const { input, output } = this.#terminal
    input.setRawMode(false) // the shell may have changed it while this process was stopped
    input.setRawMode(true)
    input.resume()
    output.write(enter)
    this.#isOpen = true
    this.#last = ''
    this.draw()
  }

  #leave(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#terminal.output.write(leave)
    this.#terminal.input.setRawMode(false)
  }

  #press(text: string, { name = '', ctrl = false, meta = false }: { name?: string; ctrl?: boolean; meta?: boolean }) {
    if (ctrl && name === 'c') process.kill(process.pid, 'SIGINT')
    else if (text === '\u001c') process.kill(process.pid, 'SIGQUIT')
    else if (ctrl && name === 'z') this.#stop()
    else if (ctrl && name === 'l') {
      this.#last = ''
      this.draw()
    } else if (!ctrl && (!meta || name === 'escape'))
      this.#onKey({ name: name || text, text: /^[^\p{Cc}]+$/u.test(text) ? text : '' })
  }

  /** Ends by the signal's own effect, as without a screen. */
  #end(signal: 'SIGQUIT') {
    this.#leave()
    process.off(signal, this.#listeners.quit)
    process.kill(process.pid, signal)
  }

  /** Stops as a program without a screen: by the signal's own effect, which only a shell with job control allows. */
  #stop(): void {
    this.#leave()
    process.off('SIGTSTP', this.#listeners.stop)
    process.kill(process.pid, 'SIGTSTP')
    setTimeout(() => {
      process.on('SIGTSTP', this.#listeners.stop)
      if (!this.#isOpen) this.#resume()
    }, stoppedWithinMs)
  }
}

/** A piece of a line: from a column of the terminal on, and so wide. */
export interface Piece {
  readonly text: string
  readonly at: number
  readonly width: number
  readonly isRight?: boolean
}

/** How a line looks beyond its words. */
export type LineStyle = 'bold' | 'red' | 'inverse' | 'dim'

/** Returns a text as a terminal shows it in this style; as it is where there is none, or one without colours. */
export const styled = (style: LineStyle, text: string, output: WriteStream): string =>
  output.isTTY ? styleText(style, text, { stream: output }) : text

/** Returns a text that is no longer than this. */
function cut(text: string, width: number): string {
  const letters = [...text]
  if (letters.length <= width) return text
  return width > 0 ? `${letters.slice(0, width - 1).join('')}…` : ''
}

/**
 * Makes a line of pieces. Each begins where it is told, by the terminal's own count: letters that are two columns wide,
 * as those of Chinese, do not shift what follows.
 */
export function lineOf(pieces: readonly Piece[], style: LineStyle | undefined, output: WriteStream): string {
  const text = pieces
    .map(({ text, at, width, isRight = false }) => {
      const fitting = cut(text, width)
      return `\u001b[${at + 1}G${isRight ? fitting.padStart(width) : fitting.padEnd(width)}`
    })
    .join('')
  return style === undefined ? text : styled(style, text, output)
}
