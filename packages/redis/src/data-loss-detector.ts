import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { slotCount } from './key-slot.ts'
import type { QuotaServers } from './quota-counts.ts'

/*
 * Promises: when a Redis has lost its counts, or may have lost the last of them, the owner of `restore` learns of it
 * within two seconds, also while an earlier loss is being restored. Of several processes that watch one server only one
 * restores.
 *
 * Every master has a canary key, whose value is the server's run id. The key is missing when the data is lost, and it
 * names another run when the server was restarted or replaced, which may have cost the last writes. While a process
 * restores, the key holds the name of that process, for a minute at a time: if the process dies, another one restores.
 */

/** A loss costs a quota that is too generous for this long; three commands a second are cheap. */
const pollEveryMs = 1_000
/** A process that has not renewed its name for this long is taken for dead. */
const restoringMs = 60_000
/** A process that watches again after this long restores first, which never does harm. */
const canaryMs = 3_600_000
/**
 * When to restore after a loss was found. Decisions of the seconds around the loss are not all metered when the first
 * restore reads the sums; the later restores include them.
 */
export const restoreAfterMs = [0, 2_000, 5_000, 15_000, 30_000] as const

/** One of several looks after a loss. */
export interface RestorePass {
  readonly isFirst: boolean
  readonly isLast: boolean
  /** Ends it early, because there is more to restore or the process stops. */
  readonly signal: AbortSignal
}

interface DataLossDetectorOptions {
  readonly servers: QuotaServers
  /** Restores what was lost. Called several times after a loss; rejects if it cannot restore now. */
  readonly restore: (pass: RestorePass) => Promise<void>
  /** Called once in a row for each kind of fault. */
  readonly onFault: (error: Error) => void
  /**
   * Called with the reason of a restore. `new`: the server was empty at the first poll, and may never have had data.
   */
  readonly onLoss: (why: 'new' | 'empty' | 'restarted') => void
  /** How long after a loss to restore, in milliseconds; given by tests. */
  readonly restoreAfterMs?: readonly number[]
}

/** Returns the first canary name whose slot the master holds. */
function canaryKeyOf(master: Redis, { serverOf }: QuotaServers): string | undefined {
  for (let at = 0; at < slotCount; at += 1) {
    const key = `weir:1:{_here-${at}}`
    if (serverOf(key) === master) return key
  }
  return undefined
}

const runIdOf = async (master: Redis) => /^run_id:(\w+)/m.exec(await master.info('server'))?.[1] ?? ''

/** Rejects with the first fault, but not before all have ended: one master that cannot be asked holds no other up. */
async function untilAllEnded(all: readonly Promise<void>[]): Promise<void> {
  for (const one of await Promise.allSettled(all)) if (one.status === 'rejected') throw one.reason
}

/** One master's key, and its value when no data was lost. */
interface Canary {
  readonly master: Redis
  readonly key: string
  readonly runId: string
}

/** Watches the masters from its construction on, until it is stopped. */
export class DataLossDetector {
  readonly #options: DataLossDetectorOptions
  readonly #restoring = `restoring ${randomUUID()}`
  readonly #stopping = new AbortController()
  readonly #keys = new WeakMap<Redis, string>()
  readonly #seen = new WeakSet<Redis>()
  readonly #ended: Promise<void>
  /** Masters that are being restored, by canary key. */
  readonly #lost = new Map<string, Canary>()
  /** When the remaining restores are due, on the monotonic clock. */
  #due: number[] = []
  /** None of them was made. */
  #isNewLoss = false
  /** Ends the restore that is under way. */
  #restore: AbortController | undefined
  #restored: Promise<unknown> = Promise.resolve()
  #fault = ''

  constructor(options: DataLossDetectorOptions) {
    this.#options = options
    this.#ended = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#restore?.abort()
    await Promise.all([this.#ended, this.#restored])
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        await this.#poll().finally(() => this.#goOn())
        if (this.#restore === undefined) this.#fault = ''
      } catch (error) {
        this.#report(error)
      }
      await delay(pollEveryMs, undefined, { signal }).catch(() => undefined)
    }
  }

  #report(error: unknown): void {
    const fault = error instanceof Error ? error : new Error(String(error))
    if (this.#stopping.signal.aborted || fault.message === this.#fault) return
    this.#fault = fault.message
    this.#options.onFault(fault)
  }

  /** Slots move between masters, and a canary key moves with its slot. */
  #keyOf(master: Redis): string | undefined {
    const { servers } = this.#options
    const known = this.#keys.get(master)
    if (known !== undefined && servers.serverOf(known) === master) return known
    const key = canaryKeyOf(master, servers)
    if (key !== undefined) this.#keys.set(master, key)
    return key
  }

  async #poll(): Promise<void> {
    await untilAllEnded(this.#options.servers.all().map((master) => this.#look(master)))
  }

  async #look(master: Redis): Promise<void> {
    const key = this.#keyOf(master)
    if (key === undefined) return
    const canary = { master, key, runId: await runIdOf(master) }
    const found = await master.get(key)
    if (found === canary.runId) await master.pexpire(key, canaryMs)
    else if (found === this.#claimOf(canary) && this.#lost.has(key)) await master.pexpire(key, restoringMs)
    else if (found === null || found.startsWith(this.#restoring) || !found.startsWith('restoring'))
      await this.#claim(canary, found)
    this.#seen.add(master)
  }

  /** With the run: a server that is started again while it is restored may have lost something again. */
  #claimOf({ runId }: Canary): string {
    return `${this.#restoring} ${runId}`
  }

  /** Of several that find no key, one sets its name. Another run's id is overwritten; two who do so do no harm. */
  async #claim(canary: Canary, found: string | null): Promise<void> {
    const { master, key } = canary
    const taken =
      found === null
        ? await master.set(key, this.#claimOf(canary), 'PX', restoringMs, 'NX')
        : await master.set(key, this.#claimOf(canary), 'PX', restoringMs)
    if (taken !== 'OK') return
    this.#options.onLoss(found !== null ? 'restarted' : this.#seen.has(master) ? 'empty' : 'new')
    this.#lost.set(key, canary)
    this.#isNewLoss = true
    this.#restore?.abort()
    const nowMs = performance.now()
    this.#due = (this.#options.restoreAfterMs ?? restoreAfterMs).map((afterMs) => nowMs + afterMs)
  }

  /** Restores if that is due, beside the polls; a new loss ends a restore that waits, and is restored first. */
  #goOn(): void {
    const nowMs = performance.now()
    const left = this.#due.filter((dueMs) => dueMs > nowMs)
    if (this.#restore !== undefined || this.#lost.size === 0) return
    if (left.length === this.#due.length && left.length > 0) return
    const underWay = new AbortController()
    this.#restore = underWay
    const pass = { isFirst: this.#isNewLoss, isLast: left.length === 0, signal: underWay.signal }
    this.#restored = this.#restoreOnce(pass, nowMs)
      .catch((error: unknown) => {
        this.#isNewLoss ||= pass.isFirst
        if (!underWay.signal.aborted) this.#report(error)
      })
      .finally(() => (this.#restore = undefined))
  }

  /**
   * Changes canary keys after the last pass, and creates none: a key that is missing again is another loss. One that
   * cannot be reached now is changed later, on the master that holds it then; where that is another than was restored,
   * the value names the wrong run, and it is restored too.
   */
  async #restoreOnce(pass: RestorePass, startedMs: number): Promise<void> {
    if (this.#due.length > 0) {
      this.#isNewLoss = false
      await this.#options.restore(pass)
      // A loss that was found meanwhile has times of its own.
      this.#due = this.#due.filter((dueMs) => dueMs > startedMs)
    }
    if (this.#due.length > 0) return
    const watchAgain = async ([key, { runId }]: [string, Canary]) => {
      await this.#options.servers.serverOf(key).set(key, runId, 'PX', canaryMs, 'XX')
      this.#lost.delete(key)
    }
    await untilAllEnded([...this.#lost].map(watchAgain))
  }
}
