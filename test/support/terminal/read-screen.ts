/** A control sequence, what else begins with an escape, or a letter. */
const pieces = String.raw`\x1b\[([?>=]?)([\d;]*)([ -/]*[@-~])|\x1b[()#].|\x1b[^[]|[^\x1b]`

/** What stands on a terminal after everything that was written to it, as far as our own screens and shells write. */
export class ScreenReader {
  rows: number
  columns: number
  /** Whether programs that draw whole screens have the terminal. */
  isAlternate = false
  isCursorShown = true
  isWrapping = true
  /** Whether anything was ever written in a colour or style. */
  isStyled = false
  #lines: string[][]
  #row = 0
  #column = 0
  #rest = ''

  constructor(rows: number, columns: number) {
    this.rows = rows
    this.columns = columns
    this.#lines = this.#blank()
  }

  #blank = () => Array.from({ length: this.rows }, (): string[] => [])

  resize(rows: number, columns: number): void {
    this.rows = rows
    this.columns = columns
    this.#lines = this.#blank().map((_, row) => this.#lines[row]?.slice(0, columns) ?? [])
  }

  /** The lines, without the blanks at their ends. */
  lines(): string[] {
    return this.#lines.map((line) =>
      Array.from(line, (letter) => letter ?? ' ')
        .join('')
        .trimEnd(),
    )
  }

  text(): string {
    return this.lines().join('\n').trimEnd()
  }

  write(text: string): void {
    const all = this.#rest + text
    const part = new RegExp(pieces, 'suy')
    let end = 0
    for (let found = part.exec(all); found !== null; found = part.exec(all)) {
      end = part.lastIndex
      const [whole, kind = '', numbers = '', name] = found
      if (name !== undefined) this.#control(kind, numbers.split(';').map(Number), name)
      else if (!whole.startsWith('\u001b')) this.#letter(whole)
    }
    this.#rest = all.slice(end)
  }

  #letter(letter: string): void {
    if (letter === '\r') this.#column = 0
    else if (letter === '\n') this.#newLine()
    else if (letter === '\b') this.#column = Math.max(0, this.#column - 1)
    else if (letter >= ' ') {
      if (this.#column >= this.columns) {
        if (this.isWrapping) {
          this.#column = 0
          this.#newLine()
        } else this.#column = this.columns - 1
      }
      const line = this.#lines[this.#row] ?? []
      line[this.#column] = letter
      this.#column += 1
    }
  }

  #newLine(): void {
    if (this.#row < this.rows - 1) this.#row += 1
    else this.#lines = [...this.#lines.slice(1), []]
  }

  #control(kind: string, [first = 0, second = 0]: readonly number[], name: string): void {
    const line = this.#lines[this.#row] ?? []
    if (kind === '?' && (name === 'h' || name === 'l')) this.#mode(first, name === 'h')
    else if (name === 'm') this.isStyled ||= first !== 0
    else if (name === 'H') [this.#row, this.#column] = [Math.max(1, first) - 1, Math.max(1, second) - 1]
    else if (name === 'G') this.#column = Math.max(1, first) - 1
    else if (name === 'A') this.#row = Math.max(0, this.#row - Math.max(1, first))
    else if (name === 'C') this.#column += Math.max(1, first)
    else if (name === 'D') this.#column = Math.max(0, this.#column - Math.max(1, first))
    else if (name === 'K') this.#lines[this.#row] = first === 2 ? [] : line.slice(0, this.#column)
    else if (name === 'J') {
      const kept = first === 2 ? [] : [...this.#lines.slice(0, this.#row), line.slice(0, this.#column)]
      this.#lines = this.#blank().map((_, row) => kept[row] ?? [])
    }
  }

  #mode(number: number, isOn: boolean): void {
    if (number === 25) this.isCursorShown = isOn
    if (number === 7) this.isWrapping = isOn
    if (number !== 1049) return
    this.isAlternate = isOn
    this.#lines = this.#blank()
  }
}
