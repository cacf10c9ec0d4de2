import { setTimeout as delay } from 'node:timers/promises'
import { type LoadStep, underWayMax } from './profile.ts'

/** What a pace begins requests with; `dueMs` is on the clock of `performance.now()`. */
export interface Paced {
  /** Begins a request and resolves at its end. */
  readonly begin: (dueMs: number) => Promise<void>
  readonly underWay: () => number
  readonly signal: AbortSignal
}

const pause = (ms: number, signal: AbortSignal) => delay(ms, undefined, { signal }).catch(() => undefined)

/**
 * Begins requests at a rate, whatever the answers take: what is due while all connections are in use begins later, and
 * its latency counts from when it was due. Returns how many were due and never began.
 */
async function atRate(step: LoadStep & { readonly kind: 'rate' }, { begin, underWay, signal }: Paced): Promise<number> {
  const { perSecond, forMs } = step
  const total = Math.floor((perSecond * forMs) / 1_000)
  const beganMs = performance.now()
  const dueMsOf = (at: number) => beganMs + (at * 1_000) / perSecond
  for (let next = 0; !signal.aborted; ) {
    const nowMs = performance.now()
    while (next < total && dueMsOf(next) <= nowMs && underWay() < underWayMax) {
      void begin(dueMsOf(next))
      next += 1
    }
    const leftMs = beganMs + forMs - nowMs
    if (leftMs <= 0) return total - next
    await pause(Math.max(1, Math.min(leftMs, dueMsOf(next) - nowMs)), signal)
  }
  return 0
}

/** Lets users ask, each the next time after its answer and the time to think. */
async function byUsers(step: LoadStep & { readonly kind: 'users' }, { begin, signal }: Paced): Promise<number> {
  const { users, thinkMs, forMs } = step
  const endMs = performance.now() + forMs
  const user = async () => {
    while (performance.now() < endMs && !signal.aborted) {
      await begin(performance.now())
      if (thinkMs > 0) await pause(Math.min(thinkMs, Math.max(0, endMs - performance.now())), signal)
    }
  }
  await Promise.all(Array.from({ length: users }, user))
  return 0
}

/** Begins the requests of a step, until its time is over or the signal. Returns how many were due and never began. */
export const paceStep = (step: LoadStep, paced: Paced): Promise<number> =>
  step.kind === 'rate' ? atRate(step, paced) : byUsers(step, paced)
