import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import type { Charged, Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { Denials } from './denials.ts'
import type { Ask, Verdict } from './gate.ts'
import type { DecisionLog } from './ports.ts'
import { admissionOf, denialOf } from './recorded.ts'

/** A caller is told to come back after this long when the journal is full; Kafka may be back by then. */
const journalFullRetryMs = 5_000

/** What cannot be recorded is not admitted: a request that nobody counts breaks a promise that comes before speed. */
export const journalFull = (decision: Decision, charged = decision.charged): Decision => ({
  ...decision,
  ...{ allowed: false, reason: 'journal_full', deniedBy: '', shadowedBy: '', charged },
  retryAfterMs: journalFullRetryMs,
})

/** From decisions to verdicts that may be given out. */
export interface Recording {
  /** Takes the record of an admission; not safe before `written()`. False: the journal is full, and nothing was taken. */
  append(id: string, tsMs: number, ask: Ask, decision: Decision): boolean
  /** Records whoever is turned away, as one of many where that is possible. */
  refuse(ask: Ask, limits: readonly Limit[], decision: Decision): Promise<Verdict>
  /** Of a decision that is not in the journal: whoever asked is turned away, and that is recorded when it can be. */
  unrecorded(ask: Ask, limits: readonly Limit[], decision: Decision, charged?: Charged): Verdict
}

export function createRecording(log: DecisionLog, denials: Denials): Recording {
  const unrecorded: Recording['unrecorded'] = (ask, limits, decision, charged) => {
    const refusal = journalFull(decision, charged)
    return { id: denials.wait(denialOf(ask, refusal)), decision: refusal, limits }
  }

  return {
    append(id, tsMs, ask, decision) {
      return log.append(ask.subject.id, encodeDecisionOpen(admissionOf(id, tsMs, ask, decision)), true)
    },
    async refuse(ask, limits, decision) {
      const { id, isTaken } = denials.record(denialOf(ask, decision), decision.isRemembered === true)
      return !isTaken || (await log.written()) ? { id, decision, limits } : unrecorded(ask, limits, decision)
    },
    unrecorded,
  }
}
