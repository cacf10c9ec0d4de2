import { join } from 'node:path'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { onTestFinished } from 'vitest'
import { hear } from '../hear.ts'

/** What an application last said of itself. */
export interface Said {
  readonly isEnd: boolean
  /** By the number of the window. */
  readonly admitted: Readonly<Record<string, number>>
  readonly local: number
  readonly single: number
  readonly refused: number
  readonly failed: number
  /** When it last admitted something with a lease, in milliseconds since 1970. */
  readonly leasedMs: number
  readonly leases: Readonly<Record<'leased' | 'decided' | 'refused' | 'returned' | 'lost', number>>
}

interface AppOptions {
  readonly url: string
  readonly token: string
  readonly subject: string
  /** Of the limit that `admitted` is told by. */
  readonly windowMs: number
  readonly perSecond: number
  readonly seconds: number
  readonly env?: Readonly<Record<string, string>>
}

const noLeases = { leased: 0, decided: 0, refused: 0, returned: 0, lost: 0 }
const nothing: Said = {
  isEnd: false,
  admitted: {},
  local: 0,
  single: 0,
  refused: 0,
  failed: 0,
  leasedMs: 0,
  leases: noLeases,
}

export type LeasingApp = ReturnType<typeof startLeasingApp>

/** An application in a process of its own that decides with leases. It is killed behind the test. */
export function startLeasingApp({ url, token, subject, windowMs, perSecond, seconds, env }: AppOptions) {
  const program = join(import.meta.dirname, 'leasing-app.ts')
  const child = spawnBound([process.execPath, program, String(perSecond), String(seconds)], {
    stdio: 'pipe',
    env: {
      PATH: process.env.PATH,
      WEIR_URL: url,
      WEIR_KEY: token,
      SUBJECT: subject,
      WINDOW_MS: String(windowMs),
      ...env,
    },
  })
  const seen = hear(child)
  onTestFinished(() => void child.kill('SIGKILL'))
  return {
    child,
    ended: seen.ended,
    /** By the last line that is whole. */
    said(): Said {
      const end = Math.max(0, seen.stdout.lastIndexOf('\n'))
      const line = seen.stdout.slice(seen.stdout.lastIndexOf('\n', end - 1) + 1, end)
      return { ...nothing, ...JSON.parse(line || '{}') }
    },
  }
}

/** What all of them were admitted, by window, the first window first. */
export function windowsOf(said: readonly Said[]): readonly number[] {
  const windows = new Map<number, number>()
  for (const { admitted } of said) {
    for (const [end, count] of Object.entries(admitted))
      windows.set(Number(end), (windows.get(Number(end)) ?? 0) + count)
  }
  return [...windows].toSorted(([a], [b]) => a - b).map(([, count]) => count)
}

export const totalOf = (said: readonly Said[]): number => windowsOf(said).reduce((sum, count) => sum + count, 0)
