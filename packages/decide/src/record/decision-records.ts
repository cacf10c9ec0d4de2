import { hash } from 'node:crypto'
import type { DecisionInput } from '@weir/contracts/decision.v1.ts'
import type { Decision, LimitState } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { settleMsOf } from '../limits/limit-request.ts'
import { type DecisionRequest, type DecisionTrace, parentsOf, type UnauthenticatedRequest } from '../types.ts'
import { type AddressForm, countedBy, recordedAddress } from './counted-by.ts'

/** A denial as it is recorded, but for its id, time and count. */
export interface Denial
  extends Omit<
    DecisionInput,
    'id' | 'tsMs' | 'count' | 'outcome' | 'mode' | 'correction' | 'trace' | 'held' | 'basis'
  > {
  /** Undefined for what is not traced; what is has a record of its own. */
  readonly traced?: DecisionTrace | undefined
  /** The key of its record in Kafka; a coalesced record has that of its first denial. */
  readonly key: string
}

/**
 * Returns what is recorded of an admission. One that a shadow limit would have denied says so with `mode: shadow`, the
 * reason and the name that the denial would have had, and the outcome that it really had. One that a limit only
 * degraded says the same with `mode: enforce`. A repeat was charged when it was first decided.
 */
export function admissionOf(
  id: string,
  tsMs: number,
  ask: DecisionRequest,
  asked: readonly Limit[],
  decision: Decision,
  form: AddressForm,
): DecisionInput {
  const { subject, keyId, route, method, cost, view, trace, meter, dims } = ask
  const { reason, deniedBy, shadowedBy, repeats, charged } = decision
  const { limits, ip } = countedBy(ask, asked, decision.limits, form)
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
    policy: view.offset(),
    ip,
    trace: trace?.fieldFor(id),
    meter,
    dims,
    parents: parentsOf(subject),
    ...unitsOf(ask),
  }
}

/**
 * What a correction says of an admission that used nothing after all. Units that it held were not counted yet; those
 * that it was counted with are taken back, because sums add up all records.
 */
export function unusedOf(ask: DecisionRequest): Pick<DecisionInput, 'held' | 'units' | 'basis'> {
  const { held, units, basis } = unitsOf(ask)
  const unused = Object.entries(held ?? units ?? {}).map(([unit, counted]) => [unit, held === undefined ? -counted : 0])
  return ask.units === undefined ? {} : { held, units: Object.fromEntries(unused), basis }
}

/** What it takes besides its cost. */
function unitsOf(ask: DecisionRequest): Pick<DecisionInput, 'held' | 'units' | 'basis'> {
  if (ask.units === undefined) return {}
  const quantities = Object.fromEntries(ask.units)
  return settleMsOf(ask) === undefined ? { units: quantities, basis: 'reported' } : { held: quantities }
}

/** Waiting does not help whom nothing admits: a request without a credential, or one that costs too much. */
const retryMsOf = ({ reason, retryAfterMs }: Decision) =>
  reason === 'unauthorized' || reason === 'cost_exceeds_limit' ? -1 : retryAfterMs

/** Returns what is recorded of a denial. */
export function denialOf(ask: DecisionRequest, asked: readonly Limit[], decision: Decision, form: AddressForm): Denial {
  const { subject, keyId, route, method, cost, view, trace, meter, dims } = ask
  const { reason, charged, deniedBy } = decision
  const { limits, ip } = countedBy(ask, asked, decision.limits, form)
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
    policy: view.offset(),
    retryMs: retryMsOf(decision),
    ip,
    traced: trace,
    meter,
    dims,
    parents: parentsOf(subject),
    units: ask.units && Object.fromEntries(ask.units),
  }
}

/** The subject of requests without a valid credential. */
export const unauthenticated = '_unauthenticated'

/**
 * Returns what is recorded of a denied request without a valid credential. Its key is spread by address, so that a
 * flood of wrong keys does not pile up on one partition.
 */
export function unauthenticatedDenial(
  { ip, route, method, trace }: UnauthenticatedRequest,
  decision: Decision,
  form: AddressForm,
): Denial {
  const { reason, charged, deniedBy, limits } = decision
  return {
    key: hash('sha256', ip, 'hex').slice(0, 16), // the address itself stays out
    subject: unauthenticated,
    ip: recordedAddress(form, ip),
    keyId: '',
    plan: '',
    route: route.template,
    method,
    cost: route.cost,
    reason,
    charged,
    deniedBy,
    limits,
    retryMs: retryMsOf(decision),
    traced: trace,
  }
}

/** By what the limits of a denial counted; empty for the subject alone, as nearly always. */
function scopeText(limits: readonly (LimitState & { readonly by?: unknown })[]): string {
  let text = ''
  for (const { by } of limits) if (by !== undefined) text += JSON.stringify(by)
  return text
}

/** Equal for decisions that usage counts alike. None of these has a line break in it but by a bug. */
export function kindOf(one: Omit<Denial, 'key' | 'traced'>): string {
  const { subject, keyId, plan, route, method, cost, reason, deniedBy, charged, ip = '', policy = -1, limits } = one
  const { units, meter, dims, parents } = one
  const measured =
    units === undefined && meter === undefined && dims === undefined && parents === undefined
      ? ''
      : JSON.stringify([units, meter, dims, parents])
  const costs = `${cost} ${measured}`
  const who = `${subject}\n${keyId}\n${plan}\n${route}\n${method}\n${costs}`
  return `${who}\n${reason}\n${deniedBy}\n${charged}\n${policy}\n${ip}\n${scopeText(limits)}`
}

/** Returns the record of `count` such denials. */
export const denialRecordOf = (denial: Denial, id: string, tsMs: number, count: number): DecisionInput => ({
  ...denial,
  id,
  tsMs,
  count,
  outcome: 'deny',
  mode: 'enforce',
  trace: denial.traced?.fieldFor(id),
})
