import { hash } from 'node:crypto'
import { type DecisionInput, encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { LimitStore, ScopeValues } from '@weir/core/limits/limit-store.ts'
import type { Route, Subject } from '@weir/core/policy/policy.ts'
import type { NamedValues } from './http/named-scopes.ts'
import type { LivePolicy, PolicyView } from './policy-view.ts'
import type { DecisionLog } from './ports.ts'
import { createUnrecorded } from './unrecorded.ts'

/** Who asks for what, however the request came in. */
export interface Ask {
  /** The policy by which subject and route were found. */
  readonly view: PolicyView
  readonly subject: Subject
  readonly keyId: string
  /** By `addressScope`; empty when the door does not know it: limits by address then do not apply. */
  readonly ip: string
  readonly route: Route
  readonly method: string
  readonly cost: number
  readonly peek: boolean
  /** What `header:`, `query:` and `attribute:` scopes count by, if any limit does. */
  readonly named: NamedValues | undefined
  /** Under the same key within its subject, the first admission is answered again. */
  readonly idempotencyKey: string | undefined
}

/** What a door answers from. */
export interface Verdict {
  /** Id of the decision's record; undefined for a peek, which leaves none. */
  readonly id: string | undefined
  readonly decision: Decision
  /** The limits that were asked, in order; undefined for a caller that is nobody. */
  readonly limits: readonly Limit[] | undefined
}

/** The one way to a decision: every door asks here, and a verdict is given out once its record is safe. */
export interface Gate {
  decide(ask: Ask): Promise<Verdict>
  /** Records a caller without a valid key. Touches no limit. */
  refuseStranger(ask: Pick<Ask, 'ip' | 'route' | 'method'> & { readonly retryAfterMs: number }): Promise<Verdict>
}

/** A caller is told to come back after this long when the log of decisions is full; Kafka may be back by then. */
const journalFullRetryMs = 5_000

/** A stale policy may be confirmed at any second. */
const staleRetryMs = 5_000

const unauthorized: Decision = {
  allowed: false,
  reason: 'unauthorized',
  deniedBy: '',
  refusedBits: 0,
  shadowedBy: '',
  charged: 'no',
  retryAfterMs: 0,
  atUs: 0,
  repeats: '',
  limits: [],
}

/** Of everybody, while nobody knows whether the policy is still in force: not even who is a stranger. */
const policyStale: Decision = { ...unauthorized, reason: 'unavailable', retryAfterMs: staleRetryMs }

export function createGate(ports: {
  readonly policy: Pick<LivePolicy, 'isStale'>
  readonly store: LimitStore
  readonly log: DecisionLog
  readonly clock: Clock
}): Gate {
  const { policy, store, log, clock } = ports
  const withoutAddress = new WeakMap<readonly Limit[], readonly Limit[]>()
  const unrecorded = createUnrecorded()

  const limitsOf = ({ view, subject, route, ip }: Ask): readonly Limit[] => {
    const limits = view.resolveLimits(subject, route)
    if (ip !== '') return limits
    const known = withoutAddress.get(limits)
    if (known !== undefined) return known
    const rest = limits.filter(({ by }) => by.every(({ kind }) => kind !== 'ip'))
    withoutAddress.set(limits, rest)
    return rest
  }

  /** False when the journal is full, or its disk does not answer. */
  const record = async (id: string, key: string, decision: Decision, who: RecordedCaller, tsMs: number) =>
    log.append(key, encodeDecisionOpen({ id, tsMs, ...who, count: 1, ...recordedOutcome(decision) })) && log.written()

  /** Of a repeat nothing is recorded again, unless the first could not be. */
  const needsRecord = ({ repeats }: Decision) => repeats === '' || unrecorded.has(repeats)

  return {
    async decide(ask) {
      const { subject, keyId, route, method, cost, peek, idempotencyKey } = ask
      const limits = limitsOf(ask)
      const { timeZone, anchor } = subject
      const key = peek ? undefined : idempotencyKey
      const idempotency = key === undefined ? undefined : { key, id: uuidv7(clock.nowMs()) }
      const decision = policy.isStale()
        ? policyStale
        : await store.decide({ scope: scopeOf(ask), cost, peek, limits, timeZone, anchor, idempotency })
      if (peek) return { id: undefined, decision, limits }
      const tsMs = clock.nowMs()
      const id = decision.repeats || (idempotency?.id ?? uuidv7(tsMs))
      if (!needsRecord(decision)) return { id, decision, limits }
      const who = { subject: subject.id, keyId, plan: subject.plan.name, route: route.template, method, cost }
      if (await record(id, subject.id, decision, who, tsMs)) {
        if (decision.repeats !== '') unrecorded.delete(id)
        return { id, decision, limits }
      }
      if (idempotency !== undefined && decision.allowed) unrecorded.add(id)
      return { id, limits, decision: journalFull(decision) }
    },
    async refuseStranger({ ip, route, method, retryAfterMs }) {
      const tsMs = clock.nowMs()
      const id = uuidv7(tsMs)
      const { template, cost } = route
      const who = { subject: '_unauthenticated', keyId: '', plan: '', route: template, method, cost }
      // Spread by address, so that a flood of wrong keys does not pile up on one partition. The address itself stays out.
      const refused = policy.isStale() ? policyStale : unauthorized
      await record(id, hash('sha256', ip, 'hex').slice(0, 16), refused, who, tsMs)
      const decision = retryAfterMs === 0 ? refused : { ...refused, retryAfterMs }
      return { id, decision, limits: undefined }
    },
  }
}

function scopeOf({ subject, keyId, ip, route, method, named }: Ask): ScopeValues {
  const scope = { subject: subject.id, keyId, ip, route: route.template, method }
  return named === undefined ? scope : { ...scope, named }
}

/**
 * What of a decision is recorded. One that a shadow limit would have refused says so with `mode: shadow`, the reason and
 * the name that the refusal would have had, and the outcome that it really had. A repeat was charged when it was first
 * decided.
 */
function recordedOutcome(decision: Decision): RecordedOutcome {
  const { allowed, reason, charged, deniedBy, shadowedBy, repeats, limits } = decision
  const rest = { charged: repeats === '' ? charged : 'yes', limits } as const
  if (shadowedBy !== '') {
    return { outcome: 'allow', reason: 'limit', mode: 'shadow', deniedBy: shadowedBy, ...rest }
  }
  return { outcome: allowed ? 'allow' : 'deny', reason, mode: 'enforce', deniedBy, ...rest }
}

type RecordedOutcome = Pick<DecisionInput, 'outcome' | 'reason' | 'mode' | 'charged' | 'deniedBy' | 'limits'>
type RecordedCaller = Pick<DecisionInput, 'subject' | 'keyId' | 'plan' | 'route' | 'method' | 'cost'>

/** What cannot be recorded is not admitted: a request that nobody counts breaks a promise that comes before speed. */
const journalFull = (decision: Decision): Decision => ({
  ...decision,
  allowed: false,
  reason: 'journal_full',
  retryAfterMs: journalFullRetryMs,
})
