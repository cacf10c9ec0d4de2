import { WeirError } from '@weir/core/errors.ts'

/** The parts of its process that a command uses. */
export interface CommandContext {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Writes a line for people to standard error, so that standard output stays for results. */
  readonly report: (line: string) => void
  /** Writes the result of the command to standard output. */
  readonly print: (text: string) => void
  /** Aborted by SIGTERM, SIGINT, or the end of the npm that started the command. */
  readonly signal: AbortSignal
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

/** Opens the context of a command: environment, folder, output, and a signal for its end. */
export function openCommandContext(environment: NodeJS.ProcessEnv): CommandContext {
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => stop.abort())
  if (environment.npm_lifecycle_event !== undefined) stopWithNpm(() => stop.abort())
  return {
    environment,
    // npm and the launcher may be called from elsewhere than the folder in which the person typed.
    cwd: environment.INIT_CWD ?? process.cwd(),
    report: (line) => process.stderr.write(`weir: ${line}\n`),
    print: (text) => process.stdout.write(`${text}\n`),
    signal: stop.signal,
  }
}

/** Reports why a command failed and returns its exit code. A bug is thrown on, for its stack. */
export function reportFailure(error: unknown, context: CommandContext, exitCodeOfTrouble = 1): number {
  const isOperating = error instanceof WeirError
  if (context.signal.aborted) context.report('stopped while starting')
  else if (isOperating) context.report(`${error.message} [${error.code}]`)
  else throw error
  return isOperating && error.code.endsWith('_INVALID') ? 2 : exitCodeOfTrouble
}
