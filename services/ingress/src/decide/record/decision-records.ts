import { hash } from 'node:crypto'
import type { DecisionInput } from '@weir/contracts/decision.v1.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Ask } from '../../gate.ts'
import type { Denial } from './denials.ts'

/**
 * What of an admission is recorded. One that a shadow limit would have refused says so with `mode: shadow`, the reason and the name
 * that the refusal would have had, and the outcome that it really had; one that a limit only degraded says the same with `mode: enforce`. A repeat was charged when it was first decided.
 */
export function admissionOf(id: string, tsMs: number, ask: Ask, decision: Decision): DecisionInput {
  const { subject, keyId, route, method, cost } = ask
  const { reason, deniedBy, shadowedBy, repeats, charged, limits } = decision
  const isShadowed = shadowedBy !== '' && deniedBy === ''
  return {
    id,
    tsMs,
    subject: subject.id,
    keyId,
    plan: subject.plan.name,
    route: route.template,
    method,
    cost,
    count: 1,
    outcome: 'allow',
    reason: isShadowed ? 'limit' : reason,
    mode: isShadowed ? 'shadow' : 'enforce',
    charged: repeats === '' ? charged : 'yes',
    deniedBy: isShadowed ? shadowedBy : deniedBy,
    shadowedBy,
    limits,
  }
}

/** What of a denial is recorded. */
export function denialOf({ subject, keyId, route, method, cost }: Ask, decision: Decision): Denial {
  const { reason, charged, deniedBy, limits } = decision
  const who = { key: subject.id, subject: subject.id, keyId, plan: subject.plan.name }
  return { ...who, route: route.template, method, cost, reason, charged, deniedBy, limits }
}

/** What of a caller who is nobody is recorded. Spread by address, so that a flood of wrong keys does not pile up on one partition. */
export function strangerOf({ ip, route, method }: Pick<Ask, 'ip' | 'route' | 'method'>, decision: Decision): Denial {
  const { reason, charged, deniedBy, limits } = decision
  // The address itself stays out.
  const who = { key: hash('sha256', ip, 'hex').slice(0, 16), subject: '_unauthenticated', keyId: '', plan: '' }
  return { ...who, route: route.template, method, cost: route.cost, reason, charged, deniedBy, limits }
}
