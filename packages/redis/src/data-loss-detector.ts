import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { slotCount } from './key-slot.ts'
import type { QuotaServers } from './quota-counts.ts'

/*
 * Promises: when a Redis has lost its counts, or may have lost the last of them, somebody who can restore them hears of it
 * within a second or two, also while an earlier loss is being made good; and of several who watch one server only one restores.
 *
 * On every master lies a key that says "the counts are here", with the server's run id as its value. It is gone when the data
 * is, and names another run when the server was started again or replaced, which may have cost the last writes. While somebody
 * restores, it says so, for a minute at a time: who dies over it is followed by another.
 */

/** A quota that is too generous for so long is what a loss costs; and three commands a second are nothing. */
const lookEveryMs = 1_000
/** A restoring that is not heard of for so long has died with its process. */
const restoringMs = 60_000
/** A watcher that comes back after this long restores first, which never does harm. */
const sentinelMs = 3_600_000
/**
 * When to restore, after a loss was found. What was decided in the seconds around it is not all metered yet when the first
 * restoring reads the sums; the later ones take in what was.
 */
const restoreAfterMs = [0, 2_000, 5_000, 15_000, 30_000] as const

export interface LossWatchOptions {
  readonly servers: QuotaServers
  /** Restores what was lost, as far as it can; called again and again, and rejects when it cannot now. */
  readonly restore: () => Promise<void>
  /** Hears each kind of fault once in a row. */
  readonly onFault: (error: Error) => void
  /** Hears why counts are restored. `new`: the server was empty when this watcher first looked, so that nobody knows whether it had any. */
  readonly onLoss: (why: 'new' | 'empty' | 'restarted') => void
}

export interface LossWatch {
  stop(): Promise<void>
}

/** A key that the master holds: the first of a row of names whose slot is there. */
function sentinelOf(master: Redis, { serverOf }: QuotaServers): string | undefined {
  for (let at = 0; at < slotCount; at += 1) {
    const key = `weir:1:{_here-${at}}`
    if (serverOf(key) === master) return key
  }
  return undefined
}

const runIdOf = async (master: Redis) => /^run_id:(\w+)/m.exec(await master.info('server'))?.[1] ?? ''

/** One master's key, and what it says when all is well there. */
interface Sentinel {
  readonly master: Redis
  readonly key: string
  readonly runId: string
}

class Watch implements LossWatch {
  readonly #options: LossWatchOptions
  readonly #restoring = `restoring ${randomUUID()}`
  readonly #stopping = new AbortController()
  readonly #keys = new WeakMap<Redis, string>()
  readonly #seen = new WeakSet<Redis>()
  readonly #ended: Promise<void>
  /** Masters that are being restored, by the key there. */
  readonly #lost = new Map<string, Sentinel>()
  /** Times of the restorings that are left, on the monotonic clock. */
  #due: number[] = []
  #fault = ''

  constructor(options: LossWatchOptions) {
    this.#options = options
    this.#ended = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#ended
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        await this.#look()
        await this.#goOn()
        this.#fault = ''
      } catch (error) {
        this.#tell(error instanceof Error ? error : new Error(String(error)))
      }
      await delay(lookEveryMs, undefined, { signal }).catch(() => undefined)
    }
  }

  #tell(error: Error): void {
    if (this.#stopping.signal.aborted || error.message === this.#fault) return
    this.#fault = error.message
    this.#options.onFault(error)
  }

  /** Slots move between masters, and a sentinel with its slot. */
  #keyOf(master: Redis): string | undefined {
    const { servers } = this.#options
    const known = this.#keys.get(master)
    if (known !== undefined && servers.serverOf(known) === master) return known
    const key = sentinelOf(master, servers)
    if (key !== undefined) this.#keys.set(master, key)
    return key
  }

  async #look(): Promise<void> {
    for (const master of this.#options.servers.all()) {
      const key = this.#keyOf(master)
      if (key === undefined) continue
      const sentinel = { master, key, runId: await runIdOf(master) }
      const found = await master.get(key)
      if (found === sentinel.runId) await master.pexpire(key, sentinelMs)
      else if (found === this.#restoring && this.#lost.has(key)) await master.pexpire(key, restoringMs)
      else if (found === null || !found.startsWith('restoring')) await this.#claim(sentinel, found)
      this.#seen.add(master)
    }
  }

  /** Of several who find nothing there, one sets its name; who finds another run's id overwrites it, and two of them do no harm. */
  async #claim(sentinel: Sentinel, found: string | null): Promise<void> {
    const { master, key } = sentinel
    const taken =
      found === null
        ? await master.set(key, this.#restoring, 'PX', restoringMs, 'NX')
        : await master.set(key, this.#restoring, 'PX', restoringMs)
    if (taken !== 'OK') return
    this.#options.onLoss(found !== null ? 'restarted' : this.#seen.has(master) ? 'empty' : 'new')
    this.#lost.set(key, sentinel)
    const nowMs = performance.now()
    this.#due = restoreAfterMs.map((afterMs) => nowMs + afterMs)
  }

  /** Restores if it is time to. A sentinel is only changed, never made, here: one that is gone again is another loss. */
  async #goOn(): Promise<void> {
    const nowMs = performance.now()
    const left = this.#due.filter((dueMs) => dueMs > nowMs)
    if (left.length === this.#due.length) return
    await this.#options.restore()
    this.#due = left
    if (left.length > 0) return
    for (const { master, key, runId } of this.#lost.values()) await master.set(key, runId, 'PX', sentinelMs, 'XX')
    this.#lost.clear()
  }
}

/** Watches from now on, until it is stopped. */
export function watchForLoss(options: LossWatchOptions): LossWatch {
  return new Watch(options)
}
