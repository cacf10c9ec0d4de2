import { hash } from 'node:crypto'
import { type DecisionInput, encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { LimitStore } from '@weir/core/limits/limit-store.ts'
import type { Policy, Route, Subject } from '@weir/core/policy/policy.ts'
import { createLimitResolver } from '@weir/core/policy/resolve-limits.ts'
import type { DecisionLog } from './ports.ts'

/** Who asks for what, however the request came in. */
export interface Ask {
  readonly subject: Subject
  readonly keyId: string
  /** By `addressScope`; empty when the door does not know it: limits by address then do not apply. */
  readonly ip: string
  readonly route: Route
  readonly method: string
  readonly cost: number
  readonly peek: boolean
}

/** What a door answers from. */
export interface Verdict {
  /** Id of the decision's record; undefined for a peek, which leaves none. */
  readonly id: string | undefined
  readonly decision: Decision
  /** The limits that were asked, in order; undefined for a caller that is nobody. */
  readonly limits: readonly Limit[] | undefined
}

/** The one way to a decision: every door asks here, and what was decided is recorded before the door answers. */
export interface Gate {
  decide(ask: Ask): Promise<Verdict>
  /** Records a caller without a valid key. Touches no limit. */
  refuseStranger(ask: Pick<Ask, 'ip' | 'route' | 'method'>): Verdict
}

/** A caller is told to come back after this long when the log of decisions is full; Kafka may be back by then. */
const journalFullRetryMs = 5_000

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

export function createGate(ports: {
  readonly policy: Policy
  readonly store: LimitStore
  readonly log: DecisionLog
  readonly clock: Clock
}): Gate {
  const { store, log, clock } = ports
  const resolveLimits = createLimitResolver(ports.policy)
  const withoutAddress = new Map<readonly Limit[], readonly Limit[]>()

  const limitsOf = ({ subject, route, ip }: Ask): readonly Limit[] => {
    const limits = resolveLimits(subject, route)
    if (ip !== '') return limits
    const known = withoutAddress.get(limits)
    if (known !== undefined) return known
    const rest = limits.filter(({ by }) => by.every(({ kind }) => kind !== 'ip'))
    withoutAddress.set(limits, rest)
    return rest
  }

  const record = (id: string, key: string, decision: Decision, who: RecordedCaller, tsMs: number): boolean => {
    const outcome = decision.allowed ? 'allow' : 'deny'
    const { reason, charged, deniedBy, limits } = decision
    return log.append(
      key,
      encodeDecisionOpen({ id, tsMs, ...who, count: 1, outcome, reason, mode: 'enforce', charged, deniedBy, limits }),
    )
  }

  return {
    async decide(ask) {
      const { subject, keyId, ip, route, method, cost, peek } = ask
      const limits = limitsOf(ask)
      const scope = { subject: subject.id, keyId, ip, route: route.template, method }
      const { timeZone, anchor } = subject
      const decision = await store.decide({ scope, cost, peek, limits, timeZone, anchor })
      if (peek) return { id: undefined, decision, limits }
      const tsMs = clock.nowMs()
      const id = uuidv7(tsMs)
      const who = { subject: subject.id, keyId, plan: subject.plan.name, route: route.template, method, cost }
      if (record(id, subject.id, decision, who, tsMs)) return { id, decision, limits }
      return { id, limits, decision: journalFull(decision) }
    },
    refuseStranger({ ip, route, method }) {
      const tsMs = clock.nowMs()
      const id = uuidv7(tsMs)
      const { template, cost } = route
      const who = { subject: '_unauthenticated', keyId: '', plan: '', route: template, method, cost }
      // Spread by address, so that a flood of wrong keys does not pile up on one partition. The address itself stays out.
      record(id, hash('sha256', ip, 'hex').slice(0, 16), unauthorized, who, tsMs)
      return { id, decision: unauthorized, limits: undefined }
    },
  }
}

type RecordedCaller = Pick<DecisionInput, 'subject' | 'keyId' | 'plan' | 'route' | 'method' | 'cost'>

/** What cannot be recorded is not admitted: a request that nobody counts breaks a promise that comes before speed. */
const journalFull = (decision: Decision): Decision => ({
  ...decision,
  allowed: false,
  reason: 'journal_full',
  retryAfterMs: journalFullRetryMs,
})
