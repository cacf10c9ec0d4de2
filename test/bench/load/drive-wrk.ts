import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { WeirError } from '@weir/core/errors.ts'

export interface WrkOptions {
  readonly origin: string
  readonly connections: number
  readonly subjects: number
  readonly seconds: number
}

export interface WrkLoad {
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  /** Answers other than 2xx and 3xx. */
  readonly refused: number
  /** Connections that broke, and requests without an answer in time. */
  readonly broken: number
}

const script = join(import.meta.dirname, 'subjects.lua')
/** Beyond the run itself: connecting, and what wrk calibrates. */
const graceMs = 15_000

const run = promisify(execFile)

const isMissing = (error: unknown) => error instanceof Error && 'code' in error && error.code === 'ENOENT'

/** Loads one proxy by wrk, whose own cost leaves most of a core to what is measured. */
export async function driveWrk({ origin, connections, subjects, seconds }: WrkOptions): Promise<WrkLoad> {
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', script, origin, `${subjects}`]
  const ran = await run('wrk', args, { timeout: seconds * 1_000 + graceMs }).catch((error: unknown) => {
    if (isMissing(error)) throw new WeirError('CONFIG_INVALID', 'bench load needs wrk: apt-get install wrk')
    throw error
  })
  const line = ran.stdout.split('\n').find((one) => one.startsWith('{'))
  if (line === undefined) throw new Error(`wrk said no figures: ${ran.stdout}`)
  const figures: Record<string, number> = JSON.parse(line)
  const figure = (name: string) => figures[name] ?? Number.NaN
  return {
    requestsPerSecond: figure('requests') / (figure('tookUs') / 1e6),
    p50Ms: figure('p50Us') / 1_000,
    p99Ms: figure('p99Us') / 1_000,
    p999Ms: figure('p999Us') / 1_000,
    refused: figure('refused'),
    broken: figure('broken'),
  }
}
