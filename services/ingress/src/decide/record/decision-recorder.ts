import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import type { Charged, Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { Ask, Verdict } from '../../gate.ts'
import type { DecisionLog } from '../../ports.ts'
import { admissionOf } from './decision-records.ts'
import type { Denial, Denials } from './denials.ts'

/** A caller is told to come back after this long when the journal is full; Kafka may be back by then. */
const journalFullRetryMs = 5_000

/** What cannot be recorded is not admitted: a request that nobody counts breaks a promise that comes before speed. */
const journalFull = (decision: Decision, charged: Charged = decision.charged): Decision => ({
  ...decision,
  ...{ allowed: false, reason: 'journal_full', deniedBy: '', shadowedBy: '', charged },
  retryAfterMs: journalFullRetryMs,
})

/** From decisions to verdicts that may be given out. */
export interface Recording {
  /** Whether what cannot be recorded is answered as it was decided. */
  readonly admits: boolean
  /**
   * Takes the record of an admission; not safe before `written()`. Says in the end whether it stands in the journal; undefined if nothing
   * was taken.
   */
  append(id: string, tsMs: number, ask: Ask, decision: Decision): Promise<boolean> | undefined
  /** Records a refusal, as one of many where that is possible. */
  refuse(denial: Denial, limits: readonly Limit[] | undefined, decision: Decision): Promise<Verdict>
  /** Of a decision that does not stand in the journal, or not yet. What never will the journal counts in its gap page. */
  unrecorded(limits: readonly Limit[] | undefined, decision: Decision, charged?: Charged): Verdict
}

export function createRecording(log: DecisionLog, denials: Denials, onFull: 'refuse' | 'admit'): Recording {
  const admits = onFull === 'admit'

  const unrecorded: Recording['unrecorded'] = (limits, decision, charged) => {
    if (admits) return { id: undefined, decision, limits }
    const isKnownRefusal = !decision.allowed && decision.reason !== 'unavailable'
    return { id: undefined, decision: journalFull(decision, charged), limits, isKnownRefusal }
  }

  return {
    admits,
    append(id, tsMs, ask, decision) {
      const isTaken = log.append(ask.subject.id, encodeDecisionOpen(admissionOf(id, tsMs, ask, decision)), true)
      return isTaken ? log.landed() : undefined
    },
    async refuse(denial, limits, decision) {
      const id = denials.record(denial, decision.isCached === true)
      // Also where nothing was taken: by then it stands in the gap page.
      const isWritten = await log.written()
      return id !== undefined && isWritten ? { id, decision, limits } : unrecorded(limits, decision)
    },
    unrecorded,
  }
}
