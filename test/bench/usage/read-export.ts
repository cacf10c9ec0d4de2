import type { RunningConsole } from '../../support/start-console.ts'
import { residentMb } from '../process-cpu.ts'

/** What one export was and took. */
export interface Export {
  readonly rows: number
  readonly megabytes: number
  readonly seconds: number
  /** Of the console: at rest before, and the most that was seen meanwhile. */
  readonly residentMb: readonly [before: number, most: number]
}

const newline = 10

/** Reads a CSV answer as fast as it comes and keeps nothing of it. The header line is no row. */
export async function readExport({ environment, pid }: RunningConsole, path: string): Promise<Export> {
  const before = residentMb(pid())
  const startedAt = performance.now()
  const response = await fetch(`${environment.WEIR_CONSOLE_URL}${path}`, {
    headers: { authorization: `Bearer ${environment.WEIR_ADMIN_TOKEN}` },
    signal: AbortSignal.timeout(300_000),
  })
  if (response.status !== 200 || response.body === null) throw new Error(`${path} answered ${response.status}`)
  let [bytes, lines, most] = [0, 0, before]
  for await (const chunk of response.body) {
    bytes += chunk.length
    for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, at + 1)) lines += 1
    most = Math.max(most, residentMb(pid()))
  }
  const seconds = (performance.now() - startedAt) / 1_000
  return { rows: lines - 1, megabytes: bytes / 1e6, seconds, residentMb: [before, most] }
}
