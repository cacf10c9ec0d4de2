import { printable } from '@weir/core/printable.ts'
import { type Key, type LineStyle, lineOf, type Piece, Screen, type Terminal } from './screen.ts'

/** A column: so wide, and wider by its share of what the terminal has beyond that. */
export interface ListColumn {
  readonly title: string
  readonly width: number
  readonly share?: number
  readonly isRight?: boolean
}

/** A row of the list. Texts may hold anything: what a terminal would obey is escaped. */
export interface ListRow {
  /** The choice stays on the row of this key, wherever it moves. */
  readonly key: string
  readonly cells: readonly string[]
  readonly isRefused: boolean
}

/** A list that changes while it is looked at. */
export interface ListView {
  readonly columns: readonly ListColumn[]
  /** What is said above it. */
  readonly head: () => string
  readonly rows: () => readonly ListRow[]
  /** A key of its own. */
  readonly own?: { readonly name: string; readonly does: () => string; readonly press: () => void }
  /** The lines that explain a row. */
  readonly why: (key: string) => Promise<string>
}

/** Often enough for a person; a frame that is the same is not written. */
const drawEveryMs = 250

/** Cuts lines into such as fit. */
const wrapped = (text: string, columns: number) =>
  text.split('\n').flatMap((line) => line.match(new RegExp(`.{1,${Math.max(1, columns)}}`, 'gu')) ?? [''])

class ListScreen {
  readonly #view: ListView
  readonly #terminal: Terminal
  readonly #screen: Screen
  readonly #quit: () => void
  #chosen: string | undefined
  #filter = ''
  #isTyping = false
  /** What is shown while it is paused. */
  #paused: { readonly head: string; readonly rows: readonly ListRow[] } | undefined
  #explanation: string | undefined

  constructor(view: ListView, terminal: Terminal, quit: () => void) {
    this.#view = view
    this.#terminal = terminal
    this.#quit = quit
    this.#screen = new Screen(
      terminal,
      (columns, rows) => this.#lines(columns, rows),
      (key) => {
        this.#press(key)
        this.#screen.draw()
      },
    )
  }

  /** Shows it until `done`. */
  async show(done: Promise<void>): Promise<void> {
    this.#screen.open()
    const drawing = setInterval(() => this.#screen.draw(), drawEveryMs)
    try {
      await done
    } finally {
      clearInterval(drawing)
      this.#screen.close()
    }
  }

  #now = () => ({ head: this.#view.head(), rows: this.#view.rows() })

  #shown() {
    const { head, rows } = this.#paused ?? this.#now()
    return { head, rows: rows.filter(({ cells }) => cells.some((cell) => cell.includes(this.#filter))) }
  }

  #lines(columns: number, height: number): string[] {
    const width = columns - 1 // the last column stays free: a terminal erases it with the rest of the line
    const plain = (text: string, style?: LineStyle) =>
      lineOf([{ text: printable(text), at: 0, width }], style, this.#terminal.output)
    if (this.#explanation !== undefined) {
      const lines = wrapped(this.#explanation, width).slice(0, Math.max(0, height - 1))
      return [...lines.map((line) => plain(line)), plain('Esc back  q quit', 'dim')]
    }
    const { head, rows } = this.#shown()
    const at = Math.max(
      0,
      rows.findIndex(({ key }) => key === this.#chosen),
    )
    const places = Math.max(1, height - 3)
    const first = Math.max(0, at - places + 1)
    const listed = rows.slice(first, first + places)
    const blank = Array.from({ length: places - listed.length }, () => '')
    return [
      plain(`${this.#paused === undefined ? '' : 'PAUSED  '}${head}`, 'bold'),
      this.#row(
        this.#view.columns.map(({ title }) => title),
        width,
        'dim',
      ),
      ...listed.map(({ cells, isRefused }, index) => {
        const isChosen = this.#chosen !== undefined && first + index === at
        return this.#row(cells, width, isChosen ? 'inverse' : isRefused ? 'red' : undefined, isChosen)
      }),
      ...blank,
      plain(this.#keys(), 'dim'),
    ]
  }

  #row(cells: readonly string[], width: number, style: LineStyle | undefined, isChosen = false): string {
    const { columns } = this.#view
    const least = columns.reduce((sum, one) => sum + one.width + 2, 0)
    const shares = columns.reduce((sum, { share = 0 }) => sum + share, 0)
    const pieces: Piece[] = [{ text: isChosen ? '›' : '', at: 0, width: 2 }]
    let at = 2
    for (const [index, { width: own, share = 0, isRight = false }] of columns.entries()) {
      const wide = own + Math.max(0, Math.floor(((width - least) * share) / Math.max(1, shares)))
      pieces.push({ text: printable(cells[index] ?? ''), at, width: Math.max(0, Math.min(wide, width - at)), isRight })
      at += wide + 2
    }
    return lineOf(pieces, style, this.#terminal.output)
  }

  #keys(): string {
    if (this.#isTyping) return `only what has: ${this.#filter}█   Enter keeps it, Esc ends it`
    const { own } = this.#view
    const filter = this.#filter === '' ? 'f filter' : `f filter (${this.#filter})`
    return [
      'q quit',
      'p pause',
      ...(own === undefined ? [] : [`${own.name} ${own.does()}`]),
      filter,
      '↑↓ choose',
      'Enter why',
    ].join('  ')
  }

  #press({ name, text }: Key): void {
    const { own } = this.#view
    if (this.#isTyping) this.#type(name, text)
    else if (name === 'q') this.#quit()
    else if (this.#explanation !== undefined) {
      if (name === 'escape' || name === 'return') this.#explanation = undefined
    } else if (name === 'p') this.#paused = this.#paused === undefined ? this.#now() : undefined
    else if (name === 'f' || name === '/') this.#isTyping = true
    else if (name === own?.name) own.press()
    else if (name === 'return') this.#explain()
    else this.#move(name)
  }

  #type(name: string, text: string): void {
    if (name === 'return') this.#isTyping = false
    else if (name === 'escape') {
      this.#isTyping = false
      this.#filter = ''
    } else if (name === 'backspace') this.#filter = [...this.#filter].slice(0, -1).join('')
    else this.#filter += text
  }

  #move(name: string): void {
    const steps = { up: -1, k: -1, down: 1, j: 1, pageup: -10, pagedown: 10, home: -Infinity, end: Infinity } as const
    const step = Object.entries(steps).find(([key]) => key === name)?.[1]
    const { rows } = this.#shown()
    if (step === undefined || rows.length === 0) return
    const at = rows.findIndex(({ key }) => key === this.#chosen)
    this.#chosen = rows[Math.min(rows.length - 1, Math.max(0, at + step))]?.key
  }

  #explain(): void {
    const { rows } = this.#shown()
    const key = (rows.find((row) => row.key === this.#chosen) ?? rows[0])?.key
    if (key === undefined) return
    this.#chosen = key
    const asked = `asking …`
    this.#explanation = asked
    const show = (text: string) => {
      if (this.#explanation !== asked) return
      this.#explanation = text
      this.#screen.draw()
    }
    this.#view.why(key).then(show, (error: unknown) => show(error instanceof Error ? error.message : String(error)))
  }
}

/**
 * Shows a list on a terminal until a person quits, the signal, or the end of `work`, which fills the list until the
 * signal that it gets. Rejects as `work` does, once the terminal is as before.
 */
export async function showList(
  view: ListView,
  terminal: Terminal,
  { signal, work }: { readonly signal: AbortSignal; readonly work: (signal: AbortSignal) => Promise<void> },
): Promise<void> {
  const quit = new AbortController()
  const until = AbortSignal.any([signal, quit.signal])
  const ended = new Promise<void>((done) => until.addEventListener('abort', () => done(), { once: true }))
  const working = work(until)
  try {
    await new ListScreen(view, terminal, () => quit.abort()).show(Promise.race([ended, working]))
  } finally {
    quit.abort()
    await working
  }
}
