import { type DecisionInput, encodeDecisionOpen, encodeSumOpen } from '@weir/contracts/decision.v1.ts'
import { encodeGapOpen } from '@weir/contracts/journal.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { OpenSum } from '@weir/kafka/record-log.ts'
import type { DecisionLog } from './ports.ts'

/*
 * How denials are recorded. A denial that cost nothing to give (from memory, or of a caller who is nobody) comes in floods, and
 * equal ones of a second are one record with a count. What the journal has no room for waits here, summed in the same way but
 * for as long as it takes; that alone dies with the process. Whatever is beyond that is counted in a gap.
 */

/** Sums of one second. A sum takes about a kilobyte of journal; so many a second are still far below what single records take. */
const sumsMaxDefault = 1_000
/** Kinds of denials that wait for room: 10 MB at most, and more subjects than are refused at once in a bad hour. */
const waitingMaxDefault = 10_000
/** Taken from what waits at a time, so that nobody waits for it: about half a millisecond. */
const flushedAtOnce = 200
/** While something waits the journal is asked this often whether it has room; requests that are recorded ask too. */
const flushEveryMs = 1_000

/** A denial as it is recorded, but for its id, time and count. */
export interface Denial extends Omit<DecisionInput, 'id' | 'tsMs' | 'count' | 'outcome' | 'mode' | 'correction'> {
  /** Of its record in Kafka; a sum has that of its first. */
  readonly key: string
}

export interface RecordedDenial {
  /** Of the record that counts it; undefined when only a gap does. */
  readonly id: string | undefined
  /** Whether it is in the journal as soon as that is written; else it waits here. */
  readonly isTaken: boolean
  /** What becomes of a record of its own in the end; undefined for a sum, which nobody can tell of. */
  readonly landed?: Promise<boolean> | undefined
}

/** Since the process started. */
export interface DenialCounters {
  /** Told of by a sum's record. */
  summed: number
  /** In the gap record only. */
  uncounted: number
}

export interface Denials {
  /** Takes the denial. What the journal has no room for waits. */
  record(denial: Denial, isOneOfMany: boolean): RecordedDenial
  /** Lets the denial wait until the journal writes again; the id of its record to be, or undefined when only a gap will tell of it. */
  wait(denial: Denial): string | undefined
  /** As `wait`, under an id that was given out already, and with no other. */
  waitAs(id: string, denial: Denial): void
  /** Counts a denial in the gap alone. */
  miss(): void
  /** Writes what waits for room, as far as there is some. */
  flush(): void
  /** The last try: after this nothing is kept. */
  close(): void
  /** Kinds of denials that wait for room in the journal. */
  readonly waiting: number
  readonly counters: Readonly<DenialCounters>
}

export interface DenialOptions {
  readonly log: DecisionLog
  readonly clock: Clock
  /** Given by tests. */
  readonly sumsMax?: number
  readonly waitingMax?: number
}

export const createDenials = (options: DenialOptions): Denials => new DenialRecorder(options)

interface Waiting {
  readonly id: string
  readonly denial: Denial
  count: number
}

class DenialRecorder implements Denials {
  readonly #log: DecisionLog
  readonly #clock: Clock
  readonly #sumsMax: number
  readonly #waitingMax: number
  readonly #sums = new Map<string, { readonly id: string; readonly sum: OpenSum }>()
  /** Of the sums: a record stands in the minute in which it was counted. */
  #second = 0
  readonly #waiting = new Map<string, Waiting>()
  #gap: { count: number; readonly fromMs: number; toMs: number } | undefined
  #timer: NodeJS.Timeout | undefined
  readonly counters = { summed: 0, uncounted: 0 }

  constructor({ log, clock, sumsMax = sumsMaxDefault, waitingMax = waitingMaxDefault }: DenialOptions) {
    this.#log = log
    this.#clock = clock
    this.#sumsMax = sumsMax
    this.#waitingMax = waitingMax
  }

  get waiting(): number {
    return this.#waiting.size
  }

  record(denial: Denial, isOneOfMany: boolean): RecordedDenial {
    const tsMs = this.#clock.nowMs()
    const taken = isOneOfMany ? this.#addToSum(denial, tsMs) : this.#append(denial, tsMs)
    return taken ?? { id: this.wait(denial), isTaken: false }
  }

  wait(denial: Denial): string | undefined {
    const tsMs = this.#clock.nowMs()
    this.#tryLater()
    const kind = kindOf(denial)
    const known = this.#waiting.get(kind)
    if (known !== undefined) {
      known.count += 1
      return known.id
    }
    if (this.#waiting.size < this.#waitingMax) {
      const id = uuidv7(tsMs)
      // What stood in the counts is of no use once it is old.
      this.#waiting.set(kind, { id, denial: { ...denial, limits: [] }, count: 1 })
      return id
    }
    this.miss()
    return undefined
  }

  waitAs(id: string, denial: Denial): void {
    if (this.#waiting.size >= this.#waitingMax) this.miss()
    else this.#putBack({ id, denial: { ...denial, limits: [] }, count: 1 })
  }

  miss(): void {
    const tsMs = this.#clock.nowMs()
    this.counters.uncounted += 1
    this.#gap ??= { count: 0, fromMs: tsMs, toMs: tsMs }
    this.#gap.count += 1
    this.#gap.toMs = tsMs
    this.#tryLater()
  }

  flush(): void {
    const isAll = this.#appendWaiting()
    if (!isAll) return
    if (this.#gap !== undefined) {
      const detail = 'denials of more kinds than are kept while the journal is full, or summed while the disk stalled'
      if (!this.#log.append('', encodeGapOpen({ cause: 'journal_full', detail, ...this.#gap }))) return
      this.#gap = undefined
    }
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Whether the journal took all that waited. */
  #appendWaiting(): boolean {
    const tsMs = this.#clock.nowMs()
    let taken = 0
    for (const [kind, one] of this.#waiting) {
      if (taken === flushedAtOnce) break
      const { id, denial, count } = one
      // Dated by when it is written: what a mark has said to be complete must not be added to.
      if (!this.#log.append(denial.key, encodeDecisionOpen(inputOf(denial, id, tsMs, count)))) break
      this.#waiting.delete(kind)
      taken += 1
      // Not while a stalled disk may still take it: it would be counted twice.
      void this.#log.landed().then((isThere) => isThere || this.#putBack(one))
    }
    return this.#waiting.size === 0
  }

  /** The disk did not take it after all. Its equals that have come meanwhile have a record and an id of their own. */
  #putBack(one: Waiting): void {
    this.#waiting.set(`${kindOf(one.denial)}\n${one.id}`, one)
    this.#tryLater()
  }

  #tryLater(): void {
    this.#timer ??= setInterval(() => this.flush(), flushEveryMs).unref()
  }

  close(): void {
    let before = Number.POSITIVE_INFINITY
    while (this.#waiting.size < before) {
      before = this.#waiting.size
      this.flush()
    }
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #append(denial: Denial, tsMs: number): RecordedDenial | undefined {
    const id = uuidv7(tsMs)
    const isTaken = this.#log.append(denial.key, encodeDecisionOpen(inputOf(denial, id, tsMs, 1)))
    return isTaken ? { id, isTaken, landed: this.#log.landed() } : undefined
  }

  #addToSum(denial: Denial, tsMs: number): RecordedDenial | undefined {
    const second = Math.floor(tsMs / 1_000)
    if (second !== this.#second) {
      this.#second = second
      this.#sums.clear()
    }
    const kind = kindOf(denial)
    const known = this.#sums.get(kind)
    if (known?.sum.add()) {
      this.counters.summed += 1
      return { id: known.id, isTaken: true }
    }
    if (known === undefined && this.#sums.size >= this.#sumsMax) return this.#append(denial, tsMs)
    const id = uuidv7(tsMs)
    const { beforeCount, afterCount } = encodeSumOpen(inputOf(denial, id, tsMs, 0))
    const sum = this.#log.openSum(denial.key, beforeCount, afterCount)
    if (!sum?.add()) return undefined
    this.#sums.set(kind, { id, sum })
    this.counters.summed += 1
    return { id, isTaken: true }
  }
}

/** Equal for denials that any question about usage counts alike. None of these has a line break in it but by a bug. */
const kindOf = ({ subject, keyId, plan, route, method, cost, reason, deniedBy, charged }: Denial) =>
  `${subject}\n${keyId}\n${plan}\n${route}\n${method}\n${cost}\n${reason}\n${deniedBy}\n${charged}`

const inputOf = (denial: Denial, id: string, tsMs: number, count: number): DecisionInput => ({
  ...denial,
  ...{ id, tsMs, count, outcome: 'deny', mode: 'enforce' },
})
