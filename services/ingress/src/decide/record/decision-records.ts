import { hash } from 'node:crypto'
import type { DecisionInput } from '@weir/contracts/decision.v1.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { DecisionRequest, UnauthenticatedRequest } from '../types.ts'

/** A denial as it is recorded, but for its id, time and count. */
export interface Denial extends Omit<DecisionInput, 'id' | 'tsMs' | 'count' | 'outcome' | 'mode' | 'correction'> {
  /** The key of its record in Kafka; a coalesced record has that of its first denial. */
  readonly key: string
}

/**
 * Returns what is recorded of an admission. One that a shadow limit would have denied says so with `mode: shadow`, the
 * reason and the name that the denial would have had, and the outcome that it really had. One that a limit only
 * degraded says the same with `mode: enforce`. A repeat was charged when it was first decided.
 */
export function admissionOf(id: string, tsMs: number, ask: DecisionRequest, decision: Decision): DecisionInput {
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

/** Returns what is recorded of a denial. */
export function denialOf({ subject, keyId, route, method, cost }: DecisionRequest, decision: Decision): Denial {
  const { reason, charged, deniedBy, limits } = decision
  return {
    key: subject.id,
    subject: subject.id,
    keyId,
    plan: subject.plan.name,
    route: route.template,
    method,
    cost,
    reason,
    charged,
    deniedBy,
    limits,
  }
}

/**
 * Returns what is recorded of a denied request without a valid credential. Its key is spread by address, so that a
 * flood of wrong keys does not pile up on one partition.
 */
export function unauthenticatedDenial({ ip, route, method }: UnauthenticatedRequest, decision: Decision): Denial {
  const { reason, charged, deniedBy, limits } = decision
  return {
    key: hash('sha256', ip, 'hex').slice(0, 16), // the address itself stays out
    subject: '_unauthenticated',
    keyId: '',
    plan: '',
    route: route.template,
    method,
    cost: route.cost,
    reason,
    charged,
    deniedBy,
    limits,
  }
}

/** Equal for denials that any question about usage counts alike. None of these has a line break in it but by a bug. */
export const kindOf = ({ subject, keyId, plan, route, method, cost, reason, deniedBy, charged }: Denial): string =>
  `${subject}\n${keyId}\n${plan}\n${route}\n${method}\n${cost}\n${reason}\n${deniedBy}\n${charged}`

/** Returns the record of `count` such denials. */
export const denialRecordOf = (denial: Denial, id: string, tsMs: number, count: number): DecisionInput => ({
  ...denial,
  id,
  tsMs,
  count,
  outcome: 'deny',
  mode: 'enforce',
})
