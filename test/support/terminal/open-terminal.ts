import { join } from 'node:path'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { ScreenReader } from './read-screen.ts'

/** A screen changes within a moment; a busy machine may take many times that. */
const deadlineMs = 30_000

/** How a terminal was left: the exit code, and whether its modes are those of the beginning. */
export interface TerminalEnd {
  readonly code: number | null
  readonly isSame: boolean
}

/** A program in a terminal of its own, as a person would use it. */
export interface OpenTerminal {
  readonly screen: ScreenReader
  /** Of the program. */
  readonly pid: number
  readonly ended: Promise<TerminalEnd>
  type(text: string): void
  resize(rows: number, columns: number): void
  /** Whether the modes are those of the beginning now. */
  isSame(): Promise<boolean>
  /** Waits for a text on the screen, or for what `isThere` says of it; fails with what is there instead. */
  see(what: string | RegExp | ((screen: ScreenReader) => boolean)): Promise<string>
  close(): Promise<void>
}

/** Runs a program in a pseudo terminal, of 24 rows and 80 columns if nothing else is said. */
export async function openTerminal(
  command: readonly string[],
  { env = {}, rows = 24, columns = 80 }: { readonly env?: NodeJS.ProcessEnv; rows?: number; columns?: number } = {},
): Promise<OpenTerminal> {
  const program = join(import.meta.dirname, 'run-in-terminal.py')
  // These decide about colours, and a person's terminal has none of them; CI says that its log shows none.
  const { FORCE_COLOR: _, NO_COLOR: __, CI: ___, ...inherited } = process.env
  const child = spawnBound(['python3', program, String(rows), String(columns), ...command], {
    ...{ env: { ...inherited, TERM: 'xterm-256color', ...env }, stdio: 'pipe' },
  })
  const screen = new ScreenReader(rows, columns)
  const decoder = new TextDecoder()
  child.stdout?.on('data', (data: Buffer) => screen.write(decoder.decode(data, { stream: true })))
  let said = ''
  child.stderr?.on('data', (data: Buffer) => (said += data.toString()))
  const answers = (): { pid?: number; same?: boolean }[] =>
    said
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
  const exited = new Promise<number | null>((done) => child.once('close', done))
  const ended = exited.then((code) => ({ code, isSame: answers().at(-1)?.same === true }))
  const send = (what: object) => child.stdin?.write(`${JSON.stringify(what)}\n`)
  const begun = await waitUntil(() => answers()[0], { deadlineMs })
  return {
    screen,
    pid: begun?.pid ?? 0,
    ended,
    type: (text) => send({ type: text }),
    resize(newRows, newColumns) {
      screen.resize(newRows, newColumns)
      send({ size: [newRows, newColumns] })
    },
    async isSame() {
      const before = answers().length
      send({})
      const answered = await waitUntil(() => answers()[before], { deadlineMs })
      return answered?.same === true
    },
    async see(what) {
      const isThere = () => {
        if (typeof what === 'function') return what(screen)
        return typeof what === 'string' ? screen.text().includes(what) : what.test(screen.text())
      }
      if ((await waitUntil(isThere, { deadlineMs })) !== true) throw new Error(`not seen: ${what}\n${screen.text()}`)
      return screen.text()
    },
    async close() {
      child.stdin?.end()
      await ended
    },
  }
}
