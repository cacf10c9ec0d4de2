import { encodeCoalescedOpen, encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { type Charged, type Decision, denied } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { CoalescedRecord, DecisionLog } from '../ports.ts'
import type { DecisionRequest, RecordedDecision, UnauthenticatedRequest } from '../types.ts'
import { CoalescedAdmissions, isCoalesced, type SharedRecord } from './coalesced-admissions.ts'
import type { AddressForm } from './counted-by.ts'
import {
  admissionOf,
  type Denial,
  denialOf,
  denialRecordOf,
  kindOf,
  unauthenticated,
  unauthenticatedDenial,
} from './decision-records.ts'

/**
 * Coalesced records of one second. Each takes about a kilobyte of journal; this many a second are far below what single
 * records take.
 */
const coalescedMaxDefault = 1_000
/** A caller is to come back after this long when the journal is full; Kafka may be back by then. */
const journalFullRetryMs = 5_000

/** What cannot be recorded is not admitted: a request that is not counted breaks a promise that comes before speed. */
const journalFull = ({ exceededMask, atUs, repeats, limits }: Decision, charged: Charged): Decision =>
  denied('journal_full', { exceededMask, charged, atUs, repeats, limits, retryAfterMs: journalFullRetryMs })

/** What a recorder may be given beyond its log. */
interface RecorderSettings {
  readonly coalescedMax?: number | undefined
  /** As `WEIR_RECORD_ADDRESS` says. */
  readonly addressForm?: AddressForm | undefined
}

/**
 * Records decisions, and makes of each what a request may be answered with. A denial that cost nothing to give (from
 * memory, or of a request without a valid credential) comes in floods, so equal ones of a second are coalesced into one
 * record with a count. The journal counts what it does not accept in its gap file.
 */
export class DecisionRecorder {
  /** Denials, and admissions, that share a record with others, since the process started. */
  readonly counters = { coalesced: 0, admissions: 0 }
  /** Whether a decision that cannot be recorded is answered as it was decided. */
  readonly admitsUnrecorded: boolean
  readonly #log: DecisionLog
  readonly #clock: Clock
  readonly #coalescedMax: number
  readonly #addressForm: AddressForm
  /** The coalesced records of this second, by their kind: a record belongs to the minute in which it was counted. */
  readonly #coalesced = new Map<string, { readonly id: string; readonly record: CoalescedRecord }>()
  #second = 0
  readonly #admissions: CoalescedAdmissions

  /** @param coalescedMax given by tests */
  constructor(
    log: DecisionLog,
    clock: Clock,
    onFull: 'refuse' | 'admit',
    { coalescedMax = coalescedMaxDefault, addressForm = 'full' }: RecorderSettings = {},
  ) {
    this.#addressForm = addressForm
    this.#log = log
    this.#clock = clock
    this.#coalescedMax = coalescedMax
    this.admitsUnrecorded = onFull === 'admit'
    this.#admissions = new CoalescedAdmissions(log, addressForm)
  }

  /**
   * Gives the record of an admission, or of so many that are alike, to the log; it is not safe before
   * `log.writtenInTime()`. Returns what `log.finallyWritten()` does; undefined if the log did not accept it.
   */
  append(
    id: string,
    tsMs: number,
    ask: DecisionRequest,
    limits: readonly Limit[],
    decision: Decision,
    count = 1,
  ): Promise<boolean> | undefined {
    const admission = admissionOf(id, tsMs, ask, limits, decision, this.#addressForm)
    const line = encodeDecisionOpen(count === 1 ? admission : { ...admission, count })
    ask.trace?.appended(line)
    const isAccepted = this.#log.append(ask.subject.id, line, true)
    return isAccepted ? this.#log.finallyWritten() : undefined
  }

  /** As `append`, in a record that it shares; undefined where it is to have its own. */
  share(tsMs: number, ask: DecisionRequest, limits: readonly Limit[], decision: Decision): SharedRecord | undefined {
    const shared = isCoalesced(ask) ? this.#admissions.add(tsMs, ask, limits, decision) : undefined
    if (shared !== undefined) this.counters.admissions += 1
    return shared
  }

  /** Records the denial of a request whose caller is known. */
  denyRequest(ask: DecisionRequest, limits: readonly Limit[], decision: Decision): Promise<RecordedDecision> {
    return this.deny(denialOf(ask, limits, decision, this.#addressForm), limits, decision)
  }

  /** Records so many denials that were given elsewhere; false where the log did not accept them. */
  appendRefusals(ask: DecisionRequest, limits: readonly Limit[], decision: Decision, count: number): boolean {
    return this.appendDenial(denialOf(ask, limits, decision, this.#addressForm), true, count) !== undefined
  }

  /** Records the denial of a request without a valid credential. */
  denyUnauthenticated(ask: UnauthenticatedRequest, recorded: Decision, answered: Decision): Promise<RecordedDecision> {
    return this.deny(unauthenticatedDenial(ask, recorded, this.#addressForm), undefined, answered)
  }

  /** Records a denial, as one of many where that is possible. */
  async deny(denial: Denial, limits: readonly Limit[] | undefined, decision: Decision): Promise<RecordedDecision> {
    const id = this.appendDenial(denial, decision.isCached === true && denial.traced === undefined)
    // Also where the log did not accept it: by then its gap file counts it.
    const isWritten = await this.#log.writtenInTime()
    return id !== undefined && isWritten ? { id, decision, limits } : this.answerUnrecorded(limits, decision)
  }

  /**
   * The answer to a decision that is not in the journal, or not yet. One that never will be is counted in the gap file.
   */
  answerUnrecorded(
    limits: readonly Limit[] | undefined,
    decision: Decision,
    charged: Charged = decision.charged,
  ): RecordedDecision {
    if (this.admitsUnrecorded) return { id: undefined, decision, limits }
    const isKnownRefusal = !decision.allowed && decision.reason !== 'unavailable'
    return { id: undefined, decision: journalFull(decision, charged), limits, isKnownRefusal }
  }

  /**
   * Returns the id of the record that counts the denial, or so many, once the journal is written; undefined when the
   * journal did not accept it.
   */
  appendDenial(denial: Denial, mayShareRecord: boolean, count = 1): string | undefined {
    const tsMs = this.#clock.nowMs()
    const shared = mayShareRecord ? this.#coalesce(denial, tsMs, count) : undefined
    if (shared !== undefined) return shared
    const id = uuidv7(tsMs)
    const line = encodeDecisionOpen(denialRecordOf(denial, id, tsMs, count))
    denial.traced?.appended(line)
    return this.#log.append(denial.key, line) ? id : undefined
  }

  #coalesce(given: Denial, tsMs: number, count: number): string | undefined {
    const second = Math.floor(tsMs / 1_000)
    if (second !== this.#second) {
      this.#second = second
      this.#coalesced.clear()
    }
    // Wrong credentials from more addresses than that share a record without an address: a flood stays one.
    const isFlood = given.subject === unauthenticated && this.#coalesced.size >= this.#coalescedMax / 2
    const denial = isFlood ? { ...given, ip: '' } : given
    const kind = kindOf(denial)
    let open = this.#coalesced.get(kind)
    if (!open?.record.add(count)) {
      if (open === undefined && this.#coalesced.size >= this.#coalescedMax) return undefined
      const id = uuidv7(tsMs)
      const { beforeCount, afterCount } = encodeCoalescedOpen(denialRecordOf(denial, id, tsMs, 0))
      const record = this.#log.openCoalesced(denial.key, beforeCount, afterCount)
      if (!record?.add(count)) return undefined
      open = { id, record }
      this.#coalesced.set(kind, open)
    }
    this.counters.coalesced += count
    return open.id
  }
}
