import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { Ask, Verdict } from '../../gate.ts'
import type { DecisionLog } from '../../ports.ts'
import type { Recording } from './decision-recorder.ts'
import { denialOf } from './decision-records.ts'
import type { Admissions } from './idempotency-records.ts'

/** Another process is about to record the first request of this repeat, or has just died with it. */
const repeatRetryMs = 1_000

/** An admission under an idempotency key: the first, or a repeat. */
interface Admitted {
  readonly tsMs: number
  readonly ask: Ask
  readonly limits: readonly Limit[]
  readonly decision: Decision
}

const repeatedTooSoon = (decision: Decision): Decision => ({
  ...decision,
  ...{ allowed: false, reason: 'unavailable', charged: 'yes', isCached: true },
  retryAfterMs: repeatRetryMs,
})

/** Sees to it that of all admissions under one idempotency key exactly one has a record, whose id all are answered with. */
export function createAdmitOnce(parts: {
  readonly log: DecisionLog
  readonly recording: Recording
  readonly admissions: Admissions
}): (admitted: Admitted, ownId: string) => Promise<Verdict> {
  const { log, recording, admissions } = parts
  /** Being recorded by this process; no more than requests are under way. */
  const underWay = new Map<string, Promise<Verdict>>()

  /** Those of which nobody knows yet whether they have a record; no more than one stalled write holds. */
  const overdue = new Set<string>()

  /** Whoever is turned away here stays charged: the next attempt is admitted by it. */
  const record = async (
    { tsMs, ask, limits, decision }: Admitted,
    id: string,
    admissionId: string,
  ): Promise<Verdict> => {
    const landed = recording.append(id, tsMs, ask, decision)
    const isWritten = await log.written()
    if (landed === undefined) return recording.unrecorded(limits, decision)
    if (isWritten) {
      admissions.mark(ask.subject.id, admissionId, id)
      return { id, decision, limits }
    }
    overdue.add(admissionId)
    const release = admissions.hold(ask.subject.id, admissionId)
    void landed.then((isThere) => {
      overdue.delete(admissionId)
      if (isThere) admissions.mark(ask.subject.id, admissionId, id)
      else release()
    })
    return recording.unrecorded(limits, decision)
  }

  return async function admitOnce(admitted, ownId) {
    const { ask, limits, decision } = admitted
    const { repeats } = decision
    if (repeats === '') {
      const first = record(admitted, ownId, ownId)
      underWay.set(ownId, first)
      return first.finally(() => underWay.delete(ownId))
    }
    await underWay.get(repeats)
    const tooSoon = () => {
      const refused = repeatedTooSoon(decision)
      return recording.refuse(denialOf(ask, refused), limits, refused)
    }
    if (overdue.has(repeats)) return tooSoon()
    const found = await admissions.claim(ask.subject.id, repeats)
    if (found.kind === 'recorded') return { id: found.recordId, decision, limits }
    return found.kind === 'ours' ? record(admitted, ownId, repeats) : tooSoon()
  }
}
