import { WeirError } from '@weir/core/errors.ts'
import type { Surroundings } from './project.ts'

/** npm does not hand on its own death: a command that npm started ends when its parent has become another. */
function stopWithNpm(stop: () => void): void {
  const npm = process.ppid
  const poll = setInterval(() => process.ppid !== npm && stop(), 500)
  poll.unref()
}

/** Opens what a command has of this process: its environment, folder and output, and a signal for its end. */
export function openSurroundings(environment: NodeJS.ProcessEnv): Surroundings {
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => stop.abort())
  if (environment.npm_lifecycle_event !== undefined) stopWithNpm(() => stop.abort())
  return {
    environment,
    // npm and the launcher may be called from elsewhere than the folder in which the person typed.
    cwd: environment.INIT_CWD ?? process.cwd(),
    say: (line) => process.stderr.write(`weir: ${line}\n`),
    print: (text) => process.stdout.write(`${text}\n`),
    signal: stop.signal,
  }
}

/** Reports why a command failed and returns its exit code. A bug is thrown on, for its stack. */
export function reportFailure(error: unknown, around: Surroundings, exitCodeOfTrouble = 1): number {
  const isOperating = error instanceof WeirError
  if (around.signal.aborted) around.say('stopped while starting')
  else if (isOperating) around.say(`${error.message} [${error.code}]`)
  else throw error
  return isOperating && error.code.endsWith('_INVALID') ? 2 : exitCodeOfTrouble
}
