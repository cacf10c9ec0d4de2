import { constants } from 'node:os'
import type { Progress } from '@weir/audit/progress.ts'
import { WeirError } from '@weir/core/errors.ts'
import { CommanderError } from 'commander'
import { ProgressLine } from './terminal/progress.ts'
import { forScreen } from './terminal/screen.ts'
import { harmless } from './text-table.ts'

/** The parts of its process that a command uses. */
export interface CommandContext {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Writes a line for people to standard error, so that standard output stays for results. */
  readonly report: (line: string) => void
  /**
   * Writes the result of the command to standard output: what a terminal would obey is escaped as JSON escapes it, so
   * that JSON stays what it is. `exactly`: for documents and files, which are written to the byte.
   */
  readonly print: (text: string, how?: 'exactly') => void
  /** Shown on a terminal, to who waits for longer than a second. */
  readonly progress: Progress
  /**
   * Aborted by SIGTERM, SIGINT, or the end of the npm that started the command. A command that has asked for it ends by
   * itself; any other is ended at once.
   */
  readonly signal: AbortSignal
}

/** The context of the command of this process. */
export interface OwnContext extends CommandContext {
  /** A person waits for the command of this name. */
  readonly beginProgress: (name: string) => void
  /** Returns the exit code of a command that a signal has stopped: 130 for Ctrl-C; undefined for one that was not. */
  readonly exitCodeOfStop: () => number | undefined
}

/** Options of every command that asks what a `weir up` runs, or the servers that the environment names. */
export interface CommonOptions {
  /** The data directory of the `weir up`. */
  readonly data: string
  /** Print JSON instead of lines for people. */
  readonly json: boolean
}

/** npm does not hand on its own death: a command that npm started ends when its parent has become another. */
function stopWithNpm(stop: () => void): void {
  const npm = process.ppid
  const poll = setInterval(() => process.ppid !== npm && stop(), 500)
  poll.unref()
}

/** Opens the context of a command: environment, folder, output, and a signal for its end, or `exit` at once. */
export function openCommandContext(environment: NodeJS.ProcessEnv, exit: (exitCode: number) => void): OwnContext {
  const stop = new AbortController()
  let exitCode: number | undefined
  let endsItself = false
  const stopBy = (signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP') => {
    exitCode ??= 128 + constants.signals[signal]
    stop.abort()
    if (!endsItself) exit(exitCode)
  }
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => stopBy(signal))
  // Its reader has enough, as `head` has: no reason for a stack.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    exit(128 + constants.signals.SIGPIPE)
  })
  if (environment.npm_lifecycle_event !== undefined) stopWithNpm(() => stopBy('SIGTERM'))
  const { stdout, stderr } = process
  // A terminal has one place for both; what is piped may be shown on it by another program.
  const isSeen = stdout.isTTY && stderr.isTTY && (environment.TERM ?? 'dumb') !== 'dumb'
  const progress = new ProgressLine(isSeen ? stderr : undefined)
  const write = (stream: NodeJS.WriteStream, text: string) => {
    progress.hide()
    stream.write(text)
  }
  return {
    environment,
    progress,
    beginProgress: (name) => progress.begin(name),
    // npm and the launcher may be called from elsewhere than the folder in which the person typed.
    cwd: environment.INIT_CWD ?? process.cwd(),
    report: (line) => write(stderr, `${forScreen(`weir: ${harmless(line)}`, stderr)}\n`),
    print: (text, how) => write(stdout, `${how === 'exactly' ? text : forScreen(harmless(text), stdout)}\n`),
    get signal() {
      endsItself = true
      return stop.signal
    },
    exitCodeOfStop: () => exitCode,
  }
}

/**
 * Reports why a command failed and returns its exit code: 2 for what is mistyped, else that of trouble. A bug is thrown
 * on, for its stack.
 */
export function reportFailure(error: unknown, context: OwnContext, exitCodeOfTrouble = 1): number {
  // Commander has said what is wrong, or has shown the help that was asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  const stopped = context.exitCodeOfStop()
  if (stopped !== undefined) {
    context.report('stopped')
    return stopped
  }
  if (!(error instanceof WeirError)) throw error
  context.report(`${error.message} [${error.code}]`)
  return error.code.endsWith('_INVALID') ? 2 : exitCodeOfTrouble
}
