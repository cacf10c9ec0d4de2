import { type Decision, denied } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { DecisionLog, IdempotencyRecords } from '../ports.ts'
import type { DecisionRequest, RecordedDecision } from '../types.ts'
import type { DecisionRecorder } from './decision-recorder.ts'

/** Another process is about to record the first request of this repeat, or has just died with it. */
const repeatRetryMs = 1_000

/** An admission under an idempotency key: the first, or a repeat. */
interface Admitted {
  readonly tsMs: number
  readonly ask: DecisionRequest
  readonly limits: readonly Limit[]
  readonly decision: Decision
}

/**
 * Denies a repeat while it is not known whether the first has a record. The charge stays: the next attempt is admitted
 * by it.
 */
function repeatedTooSoon({ deniedBy, exceededMask, shadowedBy, atUs, repeats, limits }: Decision): Decision {
  const kept = { deniedBy, exceededMask, shadowedBy, atUs, repeats, limits }
  return denied('unavailable', { ...kept, charged: 'yes', retryAfterMs: repeatRetryMs, isCached: true })
}

/**
 * Makes sure that of all admissions under one idempotency key exactly one has a record, whose id answers all of them.
 */
export function recordOnce(log: DecisionLog, recorder: DecisionRecorder, records: IdempotencyRecords) {
  /** Being recorded by this process; no more than requests are under way. */
  const underWay = new Map<string, Promise<RecordedDecision>>()
  /** Admissions whose record is in doubt; no more than one stalled write holds. */
  const inDoubt = new Set<string>()

  /** A request that is denied here stays charged: the next attempt is admitted by that. */
  const write = async ({ tsMs, ask, limits, decision }: Admitted, id: string, admissionId: string) => {
    const outcome = recorder.append(id, tsMs, ask, limits, decision)
    const isWritten = await log.writtenInTime()
    if (outcome === undefined) return recorder.answerUnrecorded(limits, decision)
    if (isWritten) {
      records.mark(ask.subject.id, admissionId, id)
      return { id, decision, limits }
    }
    inDoubt.add(admissionId)
    const release = records.hold(ask.subject.id, admissionId)
    void outcome.then((isWrittenAfterAll) => {
      inDoubt.delete(admissionId)
      if (isWrittenAfterAll) records.mark(ask.subject.id, admissionId, id)
      else release()
    })
    return recorder.answerUnrecorded(limits, decision)
  }

  return async function record(admitted: Admitted, ownId: string): Promise<RecordedDecision> {
    const { ask, limits, decision } = admitted
    const { repeats } = decision
    if (repeats === '') {
      const first = write(admitted, ownId, ownId)
      underWay.set(ownId, first)
      return first.finally(() => underWay.delete(ownId))
    }
    await underWay.get(repeats)
    const claim = inDoubt.has(repeats) ? undefined : await records.claim(ask.subject.id, repeats)
    if (claim?.kind === 'recorded') return { id: claim.recordId, decision, limits }
    if (claim?.kind === 'claimed') return write(admitted, ownId, repeats)
    const tooSoon = repeatedTooSoon(decision)
    return recorder.denyRequest(ask, limits, tooSoon)
  }
}
