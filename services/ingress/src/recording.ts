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

/** A decision whose record was taken, and did not stand in the journal in time. */
export interface Overdue {
  readonly id: string
  /** Whether it does in the end. */
  readonly landed: Promise<boolean>
  readonly ask: Ask
  readonly limits: readonly Limit[]
  readonly decision: Decision
  readonly charged?: Charged
}

/** From decisions to verdicts that may be given out. */
export interface Recording {
  /**
   * Takes the record of an admission; not safe before `written()`. Gives what becomes of it in the end, or undefined: the journal is full,
   * and nothing was taken.
   */
  append(id: string, tsMs: number, ask: Ask, decision: Decision): Promise<boolean> | undefined
  /** Records whoever is turned away, as one of many where that is possible. */
  refuse(ask: Ask, limits: readonly Limit[], decision: Decision): Promise<Verdict>
  /** Of a decision that is not in the journal: whoever asked is turned away, and that is recorded when it can be. */
  unrecorded(ask: Ask, limits: readonly Limit[], decision: Decision, charged?: Charged): Verdict
  /**
   * Of a decision that may yet come to stand in the journal: whoever asked is turned away under its id, and that is recorded once it is
   * certain that the decision itself is not. `then` is told which of the two it is.
   */
  overdue(overdue: Overdue, then?: (isThere: boolean) => void): Verdict
}

export function createRecording(log: DecisionLog, denials: Denials): Recording {
  const unrecorded: Recording['unrecorded'] = (ask, limits, decision, charged) => {
    const refusal = journalFull(decision, charged)
    return { id: denials.wait(denialOf(ask, refusal)), decision: refusal, limits }
  }

  const overdue: Recording['overdue'] = ({ id, landed, ask, limits, decision, charged }, then) => {
    const refusal = journalFull(decision, charged)
    void landed.then((isThere) => {
      if (!isThere) denials.waitAs(id, denialOf(ask, refusal))
      then?.(isThere)
    })
    return { id, decision: refusal, limits }
  }

  return {
    append(id, tsMs, ask, decision) {
      const isTaken = log.append(ask.subject.id, encodeDecisionOpen(admissionOf(id, tsMs, ask, decision)), true)
      return isTaken ? log.landed() : undefined
    },
    async refuse(ask, limits, decision) {
      const { id, isTaken, landed } = denials.record(denialOf(ask, decision), decision.isRemembered === true)
      if (!isTaken || (await log.written())) return { id, decision, limits }
      if (id !== undefined && landed !== undefined) return overdue({ id, landed, ask, limits, decision })
      // One of a sum: it may be counted there, and must not be twice.
      denials.miss()
      return { id: undefined, decision: journalFull(decision), limits }
    },
    unrecorded,
    overdue,
  }
}
