import { randomUUID } from 'node:crypto'
import { type DecisionInput, encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { decisionInput as anyDecision } from '@weir/contracts/testing/decision-input.ts'
import { periodBoundaries } from '@weir/core/calendar/calendar.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { PeriodBoundaries, PeriodUnit } from '@weir/core/limits/limit.ts'

/** A limit of the decision, with the period that it was charged in. */
export interface DecidedQuota {
  readonly name: string
  readonly unit: PeriodUnit
  readonly timeZone?: string
}

/** An allowed decision of cost 1; a test states only what matters to it. */
export function decisionInput(
  change: Partial<DecisionInput> & Pick<DecisionInput, 'subject' | 'tsMs'>,
  quotas: readonly DecidedQuota[] = [],
): DecisionInput {
  const { tsMs } = change
  const limits = quotas.map(({ name, unit, timeZone = 'UTC' }) => {
    const [, nextMs]: PeriodBoundaries = periodBoundaries(unit, timeZone, 1, tsMs)
    return { name, size: 1_000, used: 1, remaining: 999, resetMs: nextMs - tsMs }
  })
  return anyDecision({ id: uuidv7(tsMs), route: 'GET /v1/things', limits, ...change })
}

/** Lines as metering inserts them: numbered from 0 by a journal of their own, in partition 0. */
export function rowsOf(decisions: readonly DecisionInput[], journal: string = randomUUID()): Buffer {
  const lines = decisions.map(
    (decision, seq) =>
      `${encodeDecisionOpen(decision)},"journal":"${journal}","seq":${seq},"partition":0,"offset":${seq}}\n`,
  )
  return Buffer.from(lines.join(''))
}
