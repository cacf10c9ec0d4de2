import type { Decision, LimitState } from '../limits/decision.ts'
import type { Limit, PeriodBoundaries } from '../limits/limit.ts'
import type { LimitRequest } from '../limits/limit-store.ts'
import { decisionOf, verdicts } from '../limits/verdict.ts'
import { type FixedWindowState, planFixedWindow } from './fixed-window.ts'
import type { Plan } from './plan.ts'

/** The state of one key, tagged by who wrote it: another algorithm counts it as none. */
export interface ModelCell {
  readonly algorithm: Limit['algorithm']
  readonly state: FixedWindowState
}

/** One limit of a request with its key, and with boundaries if it has a calendar period. */
export interface ModelLimit {
  readonly limit: Limit
  readonly key: string
  readonly boundaries: PeriodBoundaries | undefined
}

export interface ModelResult {
  readonly decision: Decision
  /** The keys to store, if the request was charged; empty otherwise. */
  readonly changes: readonly (readonly [key: string, cell: ModelCell])[]
  /** Limits begun anew although their span had not ended. */
  readonly rebased: number
}

function planLimit(
  { limit, boundaries }: ModelLimit,
  cell: ModelCell | undefined,
  cost: number,
  nowMs: number,
): Plan<FixedWindowState> {
  if (limit.algorithm !== 'fixed_window' || limit.mode !== 'enforce') {
    throw new Error(`limit ${limit.name}: ${limit.algorithm} in mode ${limit.mode} is not built`)
  }
  const state = cell?.algorithm === limit.algorithm ? cell.state : undefined
  if (limit.span.kind === 'window') return planFixedWindow(state, { size: limit.size, span: limit.span }, cost, nowMs)
  if (boundaries === undefined) throw new Error(`limit ${limit.name} has a calendar period but no boundaries`)
  return planFixedWindow(state, { size: limit.size, span: { kind: 'period', boundaries } }, cost, nowMs)
}

const stateOf = ({ limit }: ModelLimit, { used, remaining, resetMs }: Plan<FixedWindowState>): LimitState => ({
  name: limit.name,
  size: limit.size,
  used,
  remaining,
  resetMs,
})

/** What lua/scripts/decide.lua decides for one request, as a function of values. Nothing is changed: the caller stores `changes`. */
export function decideModel(
  cells: ReadonlyMap<string, ModelCell>,
  request: LimitRequest,
  limits: readonly ModelLimit[],
  nowMs: number,
): ModelResult {
  const planAll = (cost: number) => limits.map((limit) => planLimit(limit, cells.get(limit.key), cost, nowMs))
  const plans = planAll(request.cost)
  const refusedBits = plans.reduce((bits, { waitMs }, at) => (waitMs === 0 ? bits : bits + 2 ** at), 0)
  const never = plans.some(({ waitMs }) => waitMs < 0)
  const charged = refusedBits === 0 && !request.peek
  const shown = charged ? plans : planAll(0)
  const decision = decisionOf(request, {
    verdict: refusedBits === 0 ? verdicts.allowed : never ? verdicts.refusedForGood : verdicts.refused,
    refusedBits,
    waitMs: never ? 0 : Math.max(0, ...plans.map(({ waitMs }) => waitMs)),
    limits: limits.flatMap((limit, at) => {
      const plan = shown[at]
      return plan === undefined ? [] : [stateOf(limit, plan)]
    }),
  })
  const changes = limits.flatMap(({ limit, key }, at) => {
    const next = plans[at]?.next
    return charged && next !== undefined ? [[key, { algorithm: limit.algorithm, state: next }] as const] : []
  })
  const rebased = charged ? plans.filter((plan) => plan.next !== undefined && plan.rebased).length : 0
  return { decision, changes, rebased }
}
