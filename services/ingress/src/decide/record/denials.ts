import { type DecisionInput, encodeDecisionOpen, encodeSumOpen } from '@weir/contracts/decision.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { DecisionLog, OpenSum } from '../ports.ts'

/**
 * Sums of one second. A sum takes about a kilobyte of journal; this many a second are far below what single records
 * take.
 */
const sumsMaxDefault = 1_000
/** A denial as it is recorded, but for its id, time and count. */
export interface Denial extends Omit<DecisionInput, 'id' | 'tsMs' | 'count' | 'outcome' | 'mode' | 'correction'> {
  /** The key of its record in Kafka; a sum has that of its first denial. */
  readonly key: string
}

export interface DenialOptions {
  readonly log: DecisionLog
  readonly clock: Clock
  /** Given by tests. */
  readonly sumsMax?: number
}

/**
 * Records denials. A denial that cost nothing to give (from memory, or of a request without a valid credential) comes
 * in floods, so equal ones of a second are one record with a count. The journal counts what it does not accept in its
 * gap page.
 */
export class Denials {
  readonly #log: DecisionLog
  readonly #clock: Clock
  readonly #sumsMax: number
  readonly #sums = new Map<string, { readonly id: string; readonly sum: OpenSum }>()
  /** The second of the sums: a record belongs to the minute in which it was counted. */
  #second = 0
  /** Denials that share a record with others, since the process started. */
  readonly counters = { summed: 0 }

  constructor({ log, clock, sumsMax = sumsMaxDefault }: DenialOptions) {
    this.#log = log
    this.#clock = clock
    this.#sumsMax = sumsMax
  }

  /**
   * Returns the id of the record that counts it once the journal is written; undefined when the journal did not accept
   * it.
   */
  record(denial: Denial, mayShareRecord: boolean): string | undefined {
    const tsMs = this.#clock.nowMs()
    return (mayShareRecord ? this.#addToSum(denial, tsMs) : undefined) ?? this.#append(denial, tsMs)
  }

  #append(denial: Denial, tsMs: number): string | undefined {
    const id = uuidv7(tsMs)
    return this.#log.append(denial.key, encodeDecisionOpen(inputOf(denial, id, tsMs, 1))) ? id : undefined
  }

  #addToSum(denial: Denial, tsMs: number): string | undefined {
    const second = Math.floor(tsMs / 1_000)
    if (second !== this.#second) {
      this.#second = second
      this.#sums.clear()
    }
    const kind = kindOf(denial)
    const known = this.#sums.get(kind)
    if (known?.sum.add()) {
      this.counters.summed += 1
      return known.id
    }
    if (known === undefined && this.#sums.size >= this.#sumsMax) return undefined
    const id = uuidv7(tsMs)
    const { beforeCount, afterCount } = encodeSumOpen(inputOf(denial, id, tsMs, 0))
    const sum = this.#log.openSum(denial.key, beforeCount, afterCount)
    if (!sum?.add()) return undefined
    this.#sums.set(kind, { id, sum })
    this.counters.summed += 1
    return id
  }
}

/** Equal for denials that any question about usage counts alike. None of these has a line break in it but by a bug. */
const kindOf = ({ subject, keyId, plan, route, method, cost, reason, deniedBy, charged }: Denial) =>
  `${subject}\n${keyId}\n${plan}\n${route}\n${method}\n${cost}\n${reason}\n${deniedBy}\n${charged}`

const inputOf = (denial: Denial, id: string, tsMs: number, count: number): DecisionInput => ({
  ...denial,
  id,
  tsMs,
  count,
  outcome: 'deny',
  mode: 'enforce',
})
