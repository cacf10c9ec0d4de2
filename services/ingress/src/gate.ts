import type { Clock } from '@weir/core/clock.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { LimitRequest, LimitStore, ScopeValues } from '@weir/core/limits/limit-store.ts'
import type { Route, Subject } from '@weir/core/policy/policy.ts'
import { type Admissions, createOwnAdmissions } from './admissions.ts'
import { createAdmitOnce } from './admit-once.ts'
import { aboutOf, encodeCorrectionOpen } from './correction-record.ts'
import { createDenials, type Denials } from './denials.ts'
import type { NamedValues } from './http/named-scopes.ts'
import type { LateRefunds } from './late-refunds.ts'
import type { LivePolicy, PolicyView } from './policy-view.ts'
import type { DecisionLog } from './ports.ts'
import { strangerOf } from './recorded.ts'
import { createRecording, journalFull } from './recording.ts'
import type { ChargedDecision } from './settle.ts'

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
  /** For how long the cost can be settled; the route's if left out. */
  readonly settleMs?: number | undefined
  /** In the place of those of subject and route. */
  readonly limits?: readonly Limit[] | undefined
  /** As in `LimitRequest`; such a request can be neither repeated nor settled. */
  readonly isApart?: boolean
}

/** What a door answers from. */
export interface Verdict {
  /** Id of the record that counts the decision, alone or with its like; undefined for a peek, which leaves none. */
  readonly id: string | undefined
  readonly decision: Decision
  /** The limits that were asked, in order; undefined for a caller that is nobody. */
  readonly limits: readonly Limit[] | undefined
  /** Of an admission on a route with `refundOn`, for whoever gives it back. */
  readonly charged?: ChargedDecision
}

/** The one way to a decision: every door asks here, and a verdict is given out once its record is safe. */
export interface Gate {
  decide(ask: Ask): Promise<Verdict>
  /** Records a caller without a valid key. Touches no limit. */
  refuseStranger(ask: Pick<Ask, 'ip' | 'route' | 'method'> & { readonly retryAfterMs: number }): Promise<Verdict>
  readonly denials: Pick<Denials, 'counters' | 'waiting' | 'close'>
}

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
  isRemembered: true,
}

/** Of everybody, while nobody knows whether the policy is still in force: not even who is a stranger. */
const policyStale: Decision = { ...unauthorized, reason: 'unavailable', retryAfterMs: staleRetryMs }

export interface GateParts {
  readonly policy: Pick<LivePolicy, 'isStale'>
  readonly store: LimitStore
  readonly log: DecisionLog
  readonly clock: Clock
  readonly admissions?: Admissions | undefined
  readonly lateRefunds?: LateRefunds | undefined
}

export function createGate(parts: GateParts): Gate {
  const { policy, store, log, clock, admissions = createOwnAdmissions(), lateRefunds } = parts
  const denials = createDenials({ log, clock })
  const recording = createRecording(log, denials)
  const { append, refuse, unrecorded, overdue } = recording
  const admitOnce = createAdmitOnce({ log, recording, admissions })

  /** Should a late reply turn out to have charged it, the store gives that back, and the record is corrected. */
  const refuseUnsure = async (ask: Ask, request: LimitRequest, decision: Decision): Promise<Verdict> => {
    const tsMs = clock.nowMs()
    const verdict = await refuse(ask, request.limits, decision)
    if (verdict.id !== undefined) lateRefunds?.note({ id: verdict.id, about: aboutOf(ask, tsMs), request })
    return verdict
  }

  return {
    denials,
    async decide(ask) {
      const limits = limitsOf(ask)
      const { subject, peek, idempotencyKey, route } = ask
      const key = peek ? undefined : idempotencyKey
      const idempotency = key === undefined ? undefined : { key, id: uuidv7(clock.nowMs()) }
      const isApart = ask.isApart === true
      const keptMs = isApart ? undefined : (ask.settleMs ?? route.settleMs)
      const kept = peek || keptMs === undefined ? undefined : keep(ask, keptMs, clock.nowMs(), idempotency?.id)
      const { timeZone, anchor } = subject
      const scope = scopeOf(ask)
      const request = {
        scope,
        cost: ask.cost,
        peek,
        limits,
        timeZone,
        anchor,
        idempotency,
        settleable: kept?.settleable,
        isApart,
      }
      const decision = policy.isStale() ? policyStale : await store.decide(request)
      if (peek) return { id: undefined, decision, limits }
      if (!decision.allowed) {
        return decision.charged === 'unknown' ? refuseUnsure(ask, request, decision) : refuse(ask, limits, decision)
      }
      if (denials.waiting > 0) denials.flush()
      const tsMs = kept?.tsMs ?? clock.nowMs()
      if (idempotency !== undefined) return admitOnce({ tsMs, ask, limits, decision }, idempotency.id)
      const id = kept?.settleable.id ?? uuidv7(tsMs)
      const landed = append(id, tsMs, ask, decision)
      if (landed !== undefined && (await log.written())) {
        if (route.refundOn === undefined) return { id, decision, limits }
        return { id, decision, limits, charged: { id, about: aboutOf(ask, tsMs), request, decision } }
      }
      const isBack = decision.charged === 'yes' && (await store.refund(request, decision))
      const charged = isBack ? 'no' : decision.charged
      if (landed === undefined) return unrecorded(ask, limits, decision, charged)
      // A record that comes to stand in the journal after all says that it was charged.
      const takeBack = (isThere: boolean) => void (isThere && isBack && takeUnitsBack(log, ask, tsMs, id))
      return overdue({ id, landed, ask, limits, decision, charged }, takeBack)
    },
    async refuseStranger(ask) {
      const { retryAfterMs } = ask
      const refused = policy.isStale() ? policyStale : unauthorized
      const { id, isTaken } = denials.record(strangerOf(ask, refused), true)
      if (isTaken && !(await log.written())) {
        denials.miss()
        return { id: undefined, decision: journalFull(refused), limits: undefined }
      }
      return { id, decision: retryAfterMs === 0 ? refused : { ...refused, retryAfterMs }, limits: undefined }
    },
  }
}

/** Whoever was turned away is not to pay: the units are taken back where they were counted. */
function takeUnitsBack(log: DecisionLog, ask: Ask, tsMs: number, decisionId: string): void {
  const subject = ask.subject.id
  const about = aboutOf(ask, tsMs)
  const correction = { decisionId, subject, about, adjustment: -ask.cost, charged: 'no', limits: [] } as const
  log.append(subject, encodeCorrectionOpen(correction), true)
}

/** The limits that a request meets. Those by address do not apply where the door does not know it. */
function limitsOf({ limits, view, subject, route, ip }: Ask): readonly Limit[] {
  if (limits !== undefined) return limits
  return ip === '' ? view.resolveWithoutAddress(subject, route) : view.resolveLimits(subject, route)
}

/** A decision that can be settled is named, and dated, before it is made: its marker and its record say the same. */
function keep(ask: Ask, keptMs: number, tsMs: number, id = uuidv7(tsMs)) {
  return { tsMs, settleable: { id, keptMs, about: JSON.stringify(aboutOf(ask, tsMs)) } }
}

function scopeOf({ subject, keyId, ip, route, method, named }: Ask): ScopeValues {
  const scope = { subject: subject.id, keyId, ip, route: route.template, method }
  return named === undefined ? scope : { ...scope, named }
}
