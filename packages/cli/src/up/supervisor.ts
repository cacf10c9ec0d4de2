import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { WeirError } from '@weir/core/errors.ts'
import type { Environment } from '@weir/runtime/read-config.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'

/** One program that `weir up` keeps running. */
export interface Part {
  readonly name: string
  readonly command: readonly [string, ...string[]]
  readonly env: Readonly<Record<string, string>>
  /** One attempt: does it do its work? */
  readonly ready: () => Promise<boolean>
  /** How long the first start may take. */
  readonly startDeadlineMs: number
}

export interface Supervisor {
  /** Starts parts side by side and waits until all are ready; throws with the tail of its log if one dies or stays silent. */
  start(parts: readonly Part[], signal: AbortSignal): Promise<void>
  /** SIGTERM to these parts side by side, SIGKILL to those that stay. They are not restarted. */
  stop(names: readonly string[]): Promise<void>
  pids(): Record<string, number>
}

/** Quick at first, because most deaths are single; slow enough at last not to burn a core on a part that cannot run. */
const restartDelayFirstMs = 200
const restartDelayMaxMs = 5_000
/** Having lived so long, a part starts over with the shortest delay. */
const restartForgivenMs = 10_000
/** Longer than a service's own stop deadline (runtime/run.ts). */
const stopDeadlineMs = 25_000
/** A log that is longer at the start of its part is set aside, so that at most two such lengths remain. */
const logBytesMax = 20_000_000

interface Kept {
  readonly part: Part
  child: ChildProcess | undefined
  startedAtMs: number
  restartDelayMs: number
  timer: NodeJS.Timeout | undefined
  wanted: boolean
  /** Set once it has been ready; from then on a death is mended instead of reported as a failed start. */
  settled: boolean
}

const isAlive = (child: ChildProcess | undefined) =>
  child !== undefined && child.pid !== undefined && child.exitCode === null && child.signalCode === null

function setAsideLongLog(file: string): void {
  try {
    if (statSync(file).size > logBytesMax) renameSync(file, `${file}.1`)
  } catch {
    // There is none yet.
  }
}

export function createSupervisor(options: {
  readonly logDir: string
  /** What every part inherits, so that its own variables can be set from outside. */
  readonly environment: Environment
  /** One line for the person at the terminal. */
  readonly say: (line: string) => void
  /** Some pid is another now. */
  readonly onPids: () => void
}): Supervisor {
  const kept = new Map<string, Kept>()
  const logFile = (name: string) => join(options.logDir, `${name}.log`)

  const spawn = (entry: Kept) => {
    const { part } = entry
    setAsideLongLog(logFile(part.name))
    const log = openSync(logFile(part.name), 'a')
    const child = spawnBound(part.command, {
      stdio: ['ignore', log, log],
      env: { ...options.environment, ...part.env },
    })
    closeSync(log)
    entry.child = child
    entry.startedAtMs = performance.now()
    const onEnd = (how: string) => {
      if (entry.child !== child || !entry.wanted || !entry.settled) return
      const lived = performance.now() - entry.startedAtMs
      entry.restartDelayMs =
        lived > restartForgivenMs ? restartDelayFirstMs : Math.min(entry.restartDelayMs * 2, restartDelayMaxMs)
      options.say(
        `${part.name} ended (${how}); starting it again in ${entry.restartDelayMs} ms. Log: ${logFile(part.name)}`,
      )
      entry.timer = setTimeout(() => {
        spawn(entry)
        options.onPids()
      }, entry.restartDelayMs)
    }
    child.once('exit', (code, signal) => onEnd(signal ?? `exit code ${code}`))
    child.once('error', (error) => onEnd(error.message))
  }

  const startOne = async (part: Part, signal: AbortSignal) => {
    const entry: Kept = {
      part,
      child: undefined,
      startedAtMs: 0,
      restartDelayMs: restartDelayFirstMs,
      timer: undefined,
      wanted: true,
      settled: false,
    }
    kept.set(part.name, entry)
    spawn(entry)
    const ready = await waitUntil(async () => (isAlive(entry.child) ? (await part.ready()) && 'ready' : 'dead'), {
      deadlineMs: part.startDeadlineMs,
      signal,
    })
    if (ready !== 'ready') {
      const tail = readFileSync(logFile(part.name), 'utf8').trimEnd().split('\n').slice(-8).join('\n  ')
      const what = ready === 'dead' ? 'ended while starting' : `was not ready after ${part.startDeadlineMs / 1000} s`
      throw new WeirError('PART_NOT_STARTED', `${part.name} ${what}. The end of ${logFile(part.name)}:\n  ${tail}`)
    }
    entry.settled = true
  }

  const stopOne = async (entry: Kept) => {
    entry.wanted = false
    clearTimeout(entry.timer)
    const { child, part } = entry
    if (child === undefined || !isAlive(child)) return
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    child.kill('SIGTERM')
    const kill = setTimeout(() => {
      options.say(`${part.name} did not stop within ${stopDeadlineMs / 1000} s and is killed.`)
      child.kill('SIGKILL')
    }, stopDeadlineMs)
    await ended
    clearTimeout(kill)
  }

  return {
    async start(parts, signal) {
      await Promise.all(parts.map((part) => startOne(part, signal)))
    },
    async stop(names) {
      const entries = names.map((name) => kept.get(name)).filter((entry) => entry !== undefined)
      await Promise.all(entries.map(stopOne))
    },
    pids: () =>
      Object.fromEntries([...kept].flatMap(([name, { child }]) => (isAlive(child) ? [[name, child?.pid ?? 0]] : []))),
  }
}
