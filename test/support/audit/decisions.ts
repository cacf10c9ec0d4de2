import { randomUUID } from 'node:crypto'
import { type DecisionInput, encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
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
  const resetMs = ({ unit, timeZone = 'UTC' }: DecidedQuota) => {
    const [, nextMs]: PeriodBoundaries = periodBoundaries(unit, timeZone, 1, tsMs)
    return nextMs - tsMs
  }
  return {
    id: uuidv7(tsMs),
    keyId: 'k1',
    plan: 'free',
    route: 'GET /v1/things',
    method: 'GET',
    cost: 1,
    count: 1,
    outcome: 'allow',
    reason: 'ok',
    mode: 'enforce',
    charged: 'yes',
    deniedBy: '',
    limits: quotas.map((quota) => ({
      name: quota.name,
      size: 1_000,
      used: 1,
      remaining: 999,
      resetMs: resetMs(quota),
    })),
    ...change,
  }
}

/** Lines as metering inserts them: numbered from 0 by a journal of their own, in partition 0. */
export function rowsOf(decisions: readonly DecisionInput[], journal: string = randomUUID()): Buffer {
  const lines = decisions.map(
    (decision, seq) =>
      `${encodeDecisionOpen(decision)},"journal":"${journal}","seq":${seq},"partition":0,"offset":${seq}}\n`,
  )
  return Buffer.from(lines.join(''))
}
