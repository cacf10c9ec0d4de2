import { type DecisionInput, encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { uuidv5 } from '@weir/core/ids.ts'
import type { Charged, LimitState } from '@weir/core/limits/decision.ts'
import type { DecisionContext } from '../types.ts'

/** What a correction repeats, and of decisions that were taken ahead what each costs. */
export type LeaseContext = DecisionContext & { readonly each?: number }

/**
 * Reads what `JSON.stringify` made of it. Throws for anything else, which only a bug or another program writes there.
 */
export function parseContext(text: string): LeaseContext {
  const { tsMs, keyId, plan, route, method, ...measured }: LeaseContext = JSON.parse(text)
  // Markers of older processes have neither meter nor labels.
  const { meter = '', dims = {}, parents, each } = measured
  const texts = [keyId, plan, route, method, meter, ...Object.values(dims), ...(parents ?? [])]
  if (typeof tsMs !== 'number' || texts.some((one) => typeof one !== 'string')) {
    throw new TypeError('the stored context of a decision cannot be read')
  }
  const known = { tsMs, keyId, plan, route, method, meter, dims, ...(typeof each === 'number' && { each }) }
  return parents === undefined ? known : { ...known, parents }
}

/** Names corrections; any UUID would do, but never another. */
const namespace = '5d0e8f0e-6d3b-5c55-9d55-2f3c1b0a7e64'

/**
 * Returns the id of the correction of a decision. It is corrected once, under one id, whichever process writes that.
 */
export const correctionId = (decisionId: string): string => uuidv5(namespace, decisionId)

/** Says what a decision was charged after all; see `Correction` of the contract. */
export interface Correction {
  readonly decisionId: string
  readonly subject: string
  readonly context: DecisionContext
  readonly adjustment: number
  /** Decisions that the corrected record counts too many, below zero; absent for none. */
  readonly countAdjustment?: number | undefined
  readonly charged: Charged
  readonly limits: readonly LimitState[]
  /** What the decision held, and what it used instead. */
  readonly held?: DecisionInput['held']
  readonly units?: DecisionInput['units']
  /** How `units` are known; absent where the caller reports them. */
  readonly basis?: DecisionInput['basis']
  /** Of the record, where the decision may have others, or is not known; absent for its one correction. */
  readonly id?: string | undefined
}

/** Returns the record of a correction, as JSON without the closing brace. */
export function encodeCorrectionOpen({ decisionId, subject, context, ...correction }: Correction): string {
  const { adjustment, charged, limits, held, units, basis = 'reported' } = correction
  return encodeDecisionOpen({
    ...context,
    id: correction.id ?? correctionId(decisionId),
    subject,
    cost: 0,
    count: 0,
    outcome: 'allow',
    reason: 'ok',
    mode: 'enforce',
    charged,
    deniedBy: '',
    limits,
    held,
    ...(units !== undefined && { units, basis }),
    correction: { corrects: decisionId, adjustment, countAdjustment: correction.countAdjustment },
  })
}
