import type { ServerResponse } from 'node:http'
import type { Clock } from '@weir/core/clock.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { type Decision, denied } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { LimitRequest, LimitStore, Reservation, ScopeValues } from '@weir/core/limits/limit-store.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import type { Route, Subject } from '@weir/policy/policy.ts'
import { aboutOf } from './decide/correct/correction-record.ts'
import { type Corrections, createCorrections } from './decide/correct/corrections.ts'
import type { ChargedDecision } from './decide/correct/settle.ts'
import { createExceeded, type ExceededCounts } from './decide/limits/exceeded.ts'
import { createRecording, type Recording } from './decide/record/decision-recorder.ts'
import { denialOf, strangerOf } from './decide/record/decision-records.ts'
import { createDenials, type Denials } from './decide/record/denials.ts'
import { type Admissions, createOwnAdmissions } from './decide/record/idempotency-records.ts'
import { createAdmitOnce } from './decide/record/record-once.ts'
import { DelayQueues } from './delay/delay-queues.ts'
import { limitToWaitFor, limitWaitedFor, waitForCapacity } from './delay/wait-for-capacity.ts'
import type { NamedValues } from './http/named-scopes.ts'
import type { LivePolicy, PolicyView } from './policy-view.ts'
import type { DecisionLog } from './ports.ts'

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
  /** Its subject asked for it by a check with `settle`, and may settle it. */
  readonly isOwnSettlement?: boolean
  /** In the place of those of subject and route. */
  readonly limits?: readonly Limit[] | undefined
  /** As in `LimitRequest`; such a request can be neither repeated nor settled. */
  readonly hasOverrides?: boolean
  /** Of a door that can wait for room: the answer that is waited for. Without it nobody waits. */
  readonly client?: ServerResponse | undefined
  /** To wait so long for room in any limit; without it, in those with `onExceed: delay`, as they say. */
  readonly waitMs?: number | undefined
  /** Who asks by a policy that came into force while it waited; undefined for nobody any more. Without it, as before. */
  readonly renew?: (view: PolicyView) => Promise<Pick<Ask, 'subject' | 'keyId'> | undefined>
}

/** What a door answers from. */
export interface Verdict {
  /** Id of the record that counts the decision, alone or with its like; undefined for a peek and for what has no record. */
  readonly id: string | undefined
  readonly decision: Decision
  /** The limits that were asked, in order; undefined for a caller that is nobody. */
  readonly limits: readonly Limit[] | undefined
  /** Refused as decided, although the answer says that it could not be recorded: a gateway must not serve it. */
  readonly isKnownRefusal?: boolean
  /** Of an admission on a route with `refundOn`, for whoever gives it back. */
  readonly charged?: ChargedDecision
}

/** A caller that is not known, and what it asks for. */
export interface Stranger extends Pick<Ask, 'ip' | 'route' | 'method'> {
  readonly retryAfterMs: number
  readonly isUnsure?: boolean | undefined
}

/** The one way to a decision: every door asks here, and a verdict is given out once its record is safe, or says by its id that it has none. */
export interface Gate {
  decide(ask: Ask): Promise<Verdict>
  /** Records a caller without a valid key, or (`isUnsure`) one whose token cannot be verified now. Touches no limit. */
  refuseStranger(ask: Stranger): Promise<Verdict>
  readonly denials: Pick<Denials, 'counters'>
  /** Those who wait for room. To be drained before the doors close. */
  readonly delays: Pick<DelayQueues, 'waiting' | 'drain'>
  /** Requests beyond a limit, by what was done with them. */
  readonly exceeded: ExceededCounts
}

/** A stale policy may be confirmed at any second. */
const staleRetryMs = 5_000

const unauthorized = denied('unauthorized', { isCached: true })

/** Of everybody, while nobody knows whether the policy is still in force: not even who is a stranger. */
const policyStale = denied('unavailable', { isCached: true, retryAfterMs: staleRetryMs })
const unsure = denied('unavailable', { isCached: true })

export interface GateParts {
  readonly policy: Pick<LivePolicy, 'isStale' | 'view'>
  readonly store: LimitStore
  readonly log: DecisionLog
  readonly clock: Clock
  readonly admissions?: Admissions | undefined
  /** With `admit`, what cannot be recorded is answered as decided, else refused. */
  readonly onJournalFull?: 'refuse' | 'admit' | undefined
  /** Shared with all that correct records. */
  readonly corrections?: Corrections | undefined
  /** Given by tests. */
  readonly delays?: DelayQueues | undefined
}

/** A request as it was put to the store, and what came of it. */
interface Attempt {
  /** Of the policy by which it was decided. */
  readonly ask: Ask
  readonly request: LimitRequest
  readonly kept: Kept | undefined
  readonly decision: Decision
}

export const createGate = (parts: GateParts): Gate => new DecidingGate(parts)

class DecidingGate implements Gate {
  readonly denials: Denials
  readonly delays: DelayQueues
  readonly #parts: GateParts
  readonly #recording: Recording
  readonly #corrections: Corrections
  readonly #admitOnce: ReturnType<typeof createAdmitOnce>
  readonly #exceeded = createExceeded()

  constructor(parts: GateParts) {
    const { log, clock, admissions = createOwnAdmissions(), delays = new DelayQueues() } = parts
    this.#parts = parts
    this.delays = delays
    this.denials = createDenials({ log, clock })
    this.#recording = createRecording(log, this.denials, parts.onJournalFull ?? 'refuse')
    this.#corrections = parts.corrections ?? createCorrections(log)
    this.#admitOnce = createAdmitOnce({ log, recording: this.#recording, admissions })
  }

  get exceeded(): ExceededCounts {
    return this.#exceeded.counts
  }

  decide(ask: Ask): Promise<Verdict> {
    return this.#decide(ask, undefined)
  }

  /** `waited` is what waiting came to, and final. One function, because every promise between would cost every request. */
  async #decide(ask: Ask, waited: Attempt | undefined): Promise<Verdict> {
    const { policy, store, log, clock } = this.#parts
    const limits = limitsOf(ask)
    if (waited === undefined && this.delays.busyKeys > 0) {
      const ahead = this.#waitedFor(ask, limits)
      if (ahead !== undefined) return this.#decideLater(ask, limits, ahead, undefined)
    }
    const kept = waited === undefined ? keptOf(ask, limits, clock) : waited.kept
    const request = waited === undefined ? requestOf(ask, limits, kept, clock) : waited.request
    const fresh = waited === undefined ? (policy.isStale() ? policyStale : await store.decide(request)) : undefined
    const decision = fresh ?? waited?.decision ?? policyStale
    if (ask.peek) return { id: undefined, decision, limits }
    if (!decision.allowed) {
      const mayWait = waited === undefined && ask.client !== undefined
      const limit = mayWait ? limitToWaitFor(decision, limits, ask.waitMs) : undefined
      if (limit !== undefined) return this.#decideLater(ask, limits, limit, { ask, request, kept, decision })
      this.#exceeded.note(decision, limits)
      const { lateRefund } = decision
      return lateRefund === undefined
        ? this.#recording.refuse(denialOf(ask, decision), limits, decision)
        : this.#refuseUnsure(ask, limits, decision, lateRefund)
    }
    if (decision.deniedBy !== '') this.#exceeded.note(decision, limits)
    const tsMs = kept?.tsMs ?? clock.nowMs()
    const { idempotency } = request
    if (idempotency !== undefined) return this.#admitOnce({ tsMs, ask, limits, decision }, idempotency.id)
    const id = kept?.reservation.id ?? uuidv7(tsMs)
    const landed = this.#recording.append(id, tsMs, ask, decision)
    // Also where nothing was taken: by then it stands in the gap page.
    const isWritten = await log.written()
    if (landed !== undefined && isWritten) {
      if (ask.route.refundOn === undefined) return { id, decision, limits }
      return { id, decision, limits, charged: { id, about: aboutOf(ask, tsMs), request, decision } }
    }
    return this.#takeBack(ask, tsMs, id, { ask, request, kept, decision }, landed)
  }

  /** An admission that is not in the journal, or not yet: unless it is admitted all the same, it is refused and its charge given back. */
  async #takeBack(
    ask: Ask,
    tsMs: number,
    id: string,
    { request, decision }: Attempt,
    landed: Promise<boolean> | undefined,
  ): Promise<Verdict> {
    const { limits } = request
    if (this.#recording.admits) return this.#recording.unrecorded(limits, decision)
    const isBack = decision.charged === 'yes' && (await this.#parts.store.refund(request, decision))
    if (isBack) {
      // A record that comes to stand in the journal after all says that it was charged.
      const { subject, cost } = ask
      const correction = { decisionId: id, subject: subject.id, about: aboutOf(ask, tsMs), adjustment: -cost }
      void landed?.then((isThere) => {
        if (isThere) this.#corrections.record({ ...correction, charged: 'no', limits: [] })
      })
    }
    return this.#recording.unrecorded(limits, decision, isBack ? 'no' : decision.charged)
  }

  /** Should a late reply show a charge, the store refunds it, and the record is corrected: no usage changes by that. */
  async #refuseUnsure(
    ask: Ask,
    limits: readonly Limit[],
    decision: Decision,
    lateRefund: Promise<void>,
  ): Promise<Verdict> {
    const about = aboutOf(ask, this.#parts.clock.nowMs())
    const verdict = await this.#recording.refuse(denialOf(ask, decision), limits, decision)
    const { id: decisionId } = verdict
    if (decisionId === undefined) return verdict
    const correction = { decisionId, subject: ask.subject.id, about, adjustment: 0, charged: 'no', limits: [] } as const
    void lateRefund.then(() => this.#corrections.record(correction))
    return verdict
  }

  /** The limit for whose room others wait. A repeat under an idempotency key was admitted before: it asks, and overtakes nobody. */
  #waitedFor(ask: Ask, limits: readonly Limit[]): Limit | undefined {
    const { client, peek, idempotencyKey, cost, waitMs } = ask
    if (client === undefined || peek || idempotencyKey !== undefined) return undefined
    return limitWaitedFor(this.delays, { limits, scope: scopeOf(ask), cost, waitMs })
  }

  /** Waits for room in that limit. The refusals meanwhile are nobody's: the last of them alone is recorded, if it comes to that. */
  async #decideLater(ask: Ask, limits: readonly Limit[], limit: Limit, first: Attempt | undefined): Promise<Verdict> {
    const { client, cost, waitMs } = ask
    if (client === undefined) throw new TypeError('nobody can wait without a client')
    const patient = { limits, scope: scopeOf(ask), cost, waitMs, client }
    const again = () => this.#attempt(ask)
    const joined = () => this.#exceeded.noteWaiting()
    const { attempt, decision } = await waitForCapacity(this.delays, patient, { limit, first, again, joined })
    const { clock } = this.#parts
    const last = attempt ?? { ask, request: requestOf(ask, limits, undefined, clock), kept: undefined }
    return this.#decide(last.ask, { ...last, decision })
  }

  /** Whoever has waited is decided on as if it came now: by the policy that is in force, dated, named and asked anew. */
  async #attempt(before: Ask): Promise<Attempt> {
    const { policy, store, clock } = this.#parts
    const ask = policy.view === before.view ? before : await renewed(before, policy.view)
    const limits = limitsOf(ask ?? before)
    const kept = keptOf(ask ?? before, limits, clock)
    const request = requestOf(ask ?? before, limits, kept, clock)
    if (ask === undefined) return { ask: before, request, kept, decision: { ...unauthorized, isCached: false } }
    return { ask, request, kept, decision: policy.isStale() ? policyStale : await store.decide(request) }
  }

  refuseStranger(ask: Stranger): Promise<Verdict> {
    const { retryAfterMs, isUnsure } = ask
    const refused = this.#parts.policy.isStale() ? policyStale : isUnsure === true ? unsure : unauthorized
    const told = retryAfterMs === 0 ? refused : { ...refused, retryAfterMs }
    return this.#recording.refuse(strangerOf(ask, refused), undefined, told)
  }
}

/** The same wish by another policy; undefined if it knows the one who asks no more. */
async function renewed(ask: Ask, view: PolicyView): Promise<Ask | undefined> {
  if (ask.renew === undefined) return ask
  const who = await ask.renew(view)
  if (who === undefined || who.subject.id !== ask.subject.id) return undefined
  const route = view.policy.routes.find(({ template }) => template === ask.route.template) ?? unmatchedRoute
  return { ...ask, view, subject: who.subject, keyId: who.keyId, route }
}

/** The limits that a request meets. Those by address do not apply where the door does not know it. */
function limitsOf({ limits, view, subject, route, ip }: Ask): readonly Limit[] {
  if (limits !== undefined) return limits
  return ip === '' ? view.resolveWithoutAddress(subject, route) : view.resolveLimits(subject, route)
}

/** A decision that can be settled. */
interface Kept {
  readonly tsMs: number
  readonly reservation: Reservation
}

/** A decision that can be settled is named, and dated, before it is made: its marker and its record say the same. */
function keptOf(ask: Ask, limits: readonly Limit[], clock: Clock): Kept | undefined {
  const { route, isOwnSettlement: isOwn } = ask
  const keptMs = ask.settleMs ?? route.settleMs
  if (ask.peek || keptMs === undefined || ask.hasOverrides === true || ask.cost === 0) return undefined
  const tsMs = clock.nowMs()
  const about = JSON.stringify(aboutOf(ask, tsMs))
  const largest = limits.length === 0 ? undefined : Math.max(...limits.map(({ capacity }) => capacity))
  return { tsMs, reservation: { id: uuidv7(tsMs), keptMs, about, settleMax: route.settleMax ?? largest, isOwn } }
}

function requestOf(ask: Ask, limits: readonly Limit[], kept: Kept | undefined, clock: Clock): LimitRequest {
  const { subject, peek, idempotencyKey, cost } = ask
  const { timeZone, anchor } = subject
  // What costs nothing leaves nothing in Redis, or it could be filled for nothing; nor does what meets no limit, because it has no marker.
  const isUnmarked = peek || cost === 0 || (limits.length === 0 && kept === undefined)
  const key = isUnmarked ? undefined : idempotencyKey
  const idempotency = key === undefined ? undefined : { key, id: kept?.reservation.id ?? uuidv7(clock.nowMs()) }
  const reservation = kept?.reservation
  const hasOverrides = ask.hasOverrides === true
  return { scope: scopeOf(ask), cost, peek, limits, timeZone, anchor, idempotency, reservation, hasOverrides }
}

function scopeOf({ subject, keyId, ip, route, method, named }: Ask): ScopeValues {
  const scope = { subject: subject.id, keyId, ip, route: route.template, method }
  return named === undefined ? scope : { ...scope, named }
}
