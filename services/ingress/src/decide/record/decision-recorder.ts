import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { type Charged, type Decision, denied } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { DecisionLog } from '../ports.ts'
import type { DecisionRequest, RecordedDecision } from '../types.ts'
import { admissionOf } from './decision-records.ts'
import type { Denial, Denials } from './denials.ts'

/** A caller is to come back after this long when the journal is full; Kafka may be back by then. */
const journalFullRetryMs = 5_000

/** What cannot be recorded is not admitted: a request that is not counted breaks a promise that comes before speed. */
function journalFull({ exceededMask, atUs, repeats, limits }: Decision, charged: Charged): Decision {
  return denied('journal_full', { exceededMask, charged, atUs, repeats, limits, retryAfterMs: journalFullRetryMs })
}

/** Records decisions, and makes of each what a request may be answered with. */
export class DecisionRecorder {
  /** Whether a decision that cannot be recorded is answered as it was decided. */
  readonly admitsUnrecorded: boolean
  readonly #log: DecisionLog
  readonly #denials: Denials

  constructor(log: DecisionLog, denials: Denials, onFull: 'refuse' | 'admit') {
    this.#log = log
    this.#denials = denials
    this.admitsUnrecorded = onFull === 'admit'
  }

  /**
   * Gives the record of an admission to the log; it is not safe before `log.written()`. Returns the outcome of the
   * write, as `log.landed()` does; undefined if the log did not accept it.
   */
  append(id: string, tsMs: number, ask: DecisionRequest, decision: Decision): Promise<boolean> | undefined {
    const isAccepted = this.#log.append(ask.subject.id, encodeDecisionOpen(admissionOf(id, tsMs, ask, decision)), true)
    return isAccepted ? this.#log.landed() : undefined
  }

  /** Records a denial, as one of many where that is possible. */
  async deny(denial: Denial, limits: readonly Limit[] | undefined, decision: Decision): Promise<RecordedDecision> {
    const id = this.#denials.record(denial, decision.isCached === true)
    // Also where the log did not accept it: by then its gap page counts it.
    const isWritten = await this.#log.written()
    return id !== undefined && isWritten ? { id, decision, limits } : this.denyUnrecorded(limits, decision)
  }

  /**
   * The answer to a decision that is not in the journal, or not yet. One that never will be is counted in the gap page.
   */
  denyUnrecorded(
    limits: readonly Limit[] | undefined,
    decision: Decision,
    charged: Charged = decision.charged,
  ): RecordedDecision {
    if (this.admitsUnrecorded) return { id: undefined, decision, limits }
    const isKnownRefusal = !decision.allowed && decision.reason !== 'unavailable'
    return { id: undefined, decision: journalFull(decision, charged), limits, isKnownRefusal }
  }
}
