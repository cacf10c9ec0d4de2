import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { uuidv5 } from '@weir/core/ids.ts'
import type { Charged, LimitState } from '@weir/core/limits/decision.ts'
import type { Ask } from '../../gate.ts'

/** Of the corrected decision, what its correction says again, so that usage is corrected where it was counted. */
export interface About {
  readonly tsMs: number
  readonly keyId: string
  readonly plan: string
  readonly route: string
  readonly method: string
}

export const aboutOf = ({ subject, keyId, route, method }: Ask, tsMs: number): About => ({
  ...{ tsMs, keyId, plan: subject.plan.name, route: route.template, method },
})

type Fields = Readonly<Record<string, unknown>>
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null

/** What `JSON.stringify` made of it; throws for anything else, which only a bug or another program writes there. */
export function parseAbout(text: string): About {
  const value: unknown = JSON.parse(text)
  const { tsMs, keyId, plan, route, method } = isFields(value) ? value : {}
  const texts = [keyId, plan, route, method].map((one) => (typeof one === 'string' ? one : undefined))
  const [keyIdText, planText, routeText, methodText] = texts
  if (typeof tsMs !== 'number' || keyIdText === undefined || planText === undefined) throw new TypeError(unreadable)
  if (routeText === undefined || methodText === undefined) throw new TypeError(unreadable)
  return { tsMs, keyId: keyIdText, plan: planText, route: routeText, method: methodText }
}

const unreadable = 'what was kept about a decision cannot be read'

/** Names corrections; any UUID would do, but never another. */
const namespace = '5d0e8f0e-6d3b-5c55-9d55-2f3c1b0a7e64'

/** A decision is corrected once, and its correction has one id, whoever writes it. */
export const correctionId = (decisionId: string): string => uuidv5(namespace, decisionId)

/** The record of a correction; see `Correction` of the contract. */
export function encodeCorrectionOpen(correction: {
  readonly decisionId: string
  readonly subject: string
  readonly about: About
  readonly adjustment: number
  readonly charged: Charged
  readonly limits: readonly LimitState[]
}): string {
  const { decisionId, subject, about, adjustment, charged, limits } = correction
  return encodeDecisionOpen({
    ...{ id: correctionId(decisionId), ...about, subject, cost: 0, count: 0 },
    ...{ outcome: 'allow', reason: 'ok', mode: 'enforce', charged, deniedBy: '', limits },
    correction: { corrects: decisionId, adjustment },
  })
}
