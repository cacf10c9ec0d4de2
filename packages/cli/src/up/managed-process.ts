import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { WeirError } from '@weir/core/errors.ts'
import type { ServerPlan } from '@weir/local-programs/native-server.ts'
import { backoffMs } from '@weir/runtime/backoff.ts'
import type { Environment } from '@weir/runtime/read-config.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'

/** One program that `weir up` keeps running. */
export interface ProcessDefinition extends Pick<ServerPlan, 'command' | 'env' | 'cwd' | 'ready'> {
  readonly name: string
  /** How long the first start may take. */
  readonly startDeadlineMs: number
}

/** The parts of its supervisor that a managed process uses. */
export interface ProcessContext {
  readonly logFile: string
  /** Variables that every process inherits, so that they can be set from outside. */
  readonly environment: Environment
  /** One line for the person at the terminal. */
  readonly report: (line: string) => void
  /** Its pid is another now. */
  readonly onPid: () => void
}

/** Quick at first, because most deaths are single; slow enough at last to spare the CPU if a program cannot run. */
const restartBackoff = { firstMs: 200, maxMs: 5_000 }
/** After a life of this length a death counts as the first one again. */
const restartForgivenMs = 10_000
/** Longer than a service's own stop deadline (runtime/run.ts). */
const stopDeadlineMs = 25_000
/** A log that is longer at the start of its process is set aside, so that at most two such lengths remain. */
const logBytesMax = 20_000_000

function setAsideLongLog(file: string): void {
  try {
    if (statSync(file).size > logBytesMax) renameSync(file, `${file}.1`)
  } catch {
    // There is none yet.
  }
}

/**
 * Runs one program from its first start to its stop.
 *
 * While it starts, a death ends the start with an error. Once it was ready, a dead process is replaced by a new one,
 * after a delay that doubles while deaths follow quickly. After `stop` a death is expected.
 */
export class ManagedProcess {
  readonly #definition: ProcessDefinition
  readonly #context: ProcessContext
  #child: ChildProcess | undefined
  #startedAtMs = 0
  #deaths = 0
  #timer: NodeJS.Timeout | undefined
  #state: 'starting' | 'settled' | 'stopped' = 'starting'

  constructor(definition: ProcessDefinition, context: ProcessContext) {
    this.#definition = definition
    this.#context = context
  }

  /** Undefined while no process of it runs. */
  get pid(): number | undefined {
    const child = this.#child
    return child !== undefined && child.exitCode === null && child.signalCode === null ? child.pid : undefined
  }

  /** Resolves when it is ready for the first time; throws with the tail of its log if it died or stayed silent. */
  async start(signal: AbortSignal): Promise<void> {
    const { ready, startDeadlineMs, name } = this.#definition
    this.#spawn()
    const answer = await waitUntil(
      async () => (this.pid === undefined ? 'dead' : (await ready()) ? 'ready' : undefined),
      { deadlineMs: startDeadlineMs, signal },
    )
    if (answer !== 'ready') {
      const what = answer === 'dead' ? 'ended while starting' : `was not ready after ${startDeadlineMs / 1_000} s`
      const { logFile } = this.#context
      const tail = readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-8).join('\n  ')
      throw new WeirError('PART_NOT_STARTED', `${name} ${what}. The end of ${logFile}:\n  ${tail}`)
    }
    // It may have been stopped while it became ready.
    if (this.#state === 'starting') this.#state = 'settled'
  }

  /** SIGTERM, and SIGKILL if it stays. Resolves when it is gone; it is not started again. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    clearTimeout(this.#timer)
    const child = this.#child
    if (child === undefined || this.pid === undefined) return
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    child.kill('SIGTERM')
    const kill = setTimeout(() => {
      this.#context.report(`${this.#definition.name} did not stop within ${stopDeadlineMs / 1_000} s and was killed.`)
      child.kill('SIGKILL')
    }, stopDeadlineMs)
    await ended
    clearTimeout(kill)
  }

  #spawn(): void {
    const { logFile, environment } = this.#context
    setAsideLongLog(logFile)
    const log = openSync(logFile, 'a')
    const { env: own, command, cwd } = this.#definition // once: in tests each start has an environment of its own
    const env = { ...environment, ...own }
    // A variable of the definition takes precedence over a file that the environment names.
    for (const name in own) delete env[`${name}_FILE`]
    const child = spawnBound(command, { stdio: ['ignore', log, log], env, cwd })
    closeSync(log)
    this.#child = child
    this.#startedAtMs = performance.now()
    child.once('exit', (code, signal) => this.#onEnd(signal ?? `exit code ${code}`))
    child.once('error', (error) => this.#onEnd(error.message))
  }

  #onEnd(how: string): void {
    if (this.#state !== 'settled') return
    const livedMs = performance.now() - this.#startedAtMs
    this.#deaths = livedMs > restartForgivenMs ? 1 : this.#deaths + 1
    const delayMs = backoffMs(this.#deaths, restartBackoff)
    const { report, logFile, onPid } = this.#context
    report(`${this.#definition.name} ended (${how}); restarting it in ${delayMs} ms. Log: ${logFile}`)
    this.#timer = setTimeout(() => {
      this.#spawn()
      onPid()
    }, delayMs)
  }
}

/** Keeps the processes of `weir up` running, each with a log of its own. */
export class Supervisor {
  readonly #logDir: string
  readonly #context: Omit<ProcessContext, 'logFile'>
  readonly #processes = new Map<string, ManagedProcess>()

  constructor(logDir: string, context: Omit<ProcessContext, 'logFile'>) {
    this.#logDir = logDir
    this.#context = context
  }

  /** Starts processes concurrently and waits until all are ready. Rejects if one of them cannot start. */
  async start(definitions: readonly ProcessDefinition[], signal: AbortSignal): Promise<void> {
    const started = definitions.map((definition) => {
      const logFile = join(this.#logDir, `${definition.name}.log`)
      const one = new ManagedProcess(definition, { ...this.#context, logFile })
      this.#processes.set(definition.name, one)
      return one
    })
    await Promise.all(started.map((one) => one.start(signal)))
  }

  /** Stops the named processes concurrently, those that were started. */
  async stop(names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => this.#processes.get(name)?.stop()))
  }

  /** The process ids of those that run now. */
  pids(): Record<string, number> {
    const running: Record<string, number> = {}
    for (const [name, { pid }] of this.#processes) if (pid !== undefined) running[name] = pid
    return running
  }
}
