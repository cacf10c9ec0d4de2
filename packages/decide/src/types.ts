import type { ServerResponse } from 'node:http'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { Ancestor, LimitRequest, NamedValues, SlotCharge } from '@weir/core/limits/limit-store.ts'
import { ancestorsOf } from '@weir/policy/ancestors.ts'
import type { Route, Subject } from '@weir/policy/policy.ts'
import type { DecisionView } from './decision-view.ts'

/** The ways to ask for a decision. */
export const entryPoints = ['proxy', 'check', 'batch', 'authorize', 'grpc'] as const
/** One of `entryPoints`. */
export type EntryPoint = (typeof entryPoints)[number]

/**
 * Says who asks for what, however the request came in. With `hasOverrides` it can be neither repeated nor settled.
 */
export interface DecisionRequest extends Pick<LimitRequest, 'cost' | 'units' | 'peek' | 'hasOverrides'> {
  readonly entryPoint: EntryPoint
  /** When its head was read, or its body where the cost is in it, by `performance.now()`. */
  readonly startedAt: number
  /** The policy by which subject and route were found. */
  readonly view: DecisionView
  readonly subject: Subject
  readonly keyId: string
  /** As `addressScope` writes it; empty when it is not known: limits by address then do not apply. */
  readonly ip: string
  readonly route: Route
  readonly method: string
  /** What scopes with a name count by, if any limit does. */
  readonly named: NamedValues | undefined
  /** The meter that measured it. */
  readonly meter?: string | undefined
  /** Labels of its usage, by the names of dimensions: at most 8. */
  readonly dims?: Readonly<Record<string, string>> | undefined
  /** Under the same key within its subject, the first admission is answered again. */
  readonly idempotencyKey?: string | undefined
  /** As in `LimitRequest`; without it the key repeats whatever was asked first. */
  readonly fingerprint?: string | undefined
  /** For how long the cost can be settled; the route's if left out. */
  readonly settleMs?: number | undefined
  /** Its subject asked for it by a check with `settle`, and may settle it. */
  readonly isOwnSettlement?: boolean
  /** Replaces the limits of subject and route. */
  readonly limits?: readonly Limit[] | undefined
  /** The answer that the client waits for, where the request may wait for capacity; without it, it never does. */
  readonly client?: ServerResponse | undefined
  /** How long to wait for capacity in any limit; without it, limits with `onExceed: delay` say how long. */
  readonly waitMs?: number | undefined
  /**
   * Finds the caller under a policy that came into force while the request waited; undefined if that policy does not
   * know it. Without it the caller stays as it was.
   */
  readonly reauthenticate?: (view: DecisionView) => Promise<Pick<DecisionRequest, 'subject' | 'keyId'> | undefined>
  /** Undefined for a request that is not traced, as nearly all. */
  readonly trace?: DecisionTrace | undefined
}

/** What a request is answered from. */
export interface RecordedDecision {
  /**
   * Id of the record that counts the decision, alone or with equal ones; undefined for a peek and for what has no
   * record.
   */
  readonly id: string | undefined
  readonly decision: Decision
  /** The limits that were asked, in order; undefined for a caller without a valid credential. */
  readonly limits: readonly Limit[] | undefined
  /** The subject's ancestors; absent for none. */
  readonly above?: readonly Ancestor[] | undefined
  /** Denied by the limits, although the answer says that it could not be recorded: a gateway must not serve it. */
  readonly isKnownRefusal?: boolean
  /** What it took from limits that count requests in flight, of a request through the proxy. */
  readonly slots?: readonly SlotCharge[]
  /** Of an admission that is metered, or on a route with `refundOn`: what `Settling.refund` and `UsageSettler` take. */
  readonly charged?: ChargedDecision
}

/** What a decision is traced by. */
export interface DecisionTrace {
  /** The store is about to be asked. */
  asked(): void
  /** It has decided, or capacity came. */
  decided(): void
  /** Returns the field `trace` of the record that gets this id. */
  fieldFor(decisionId: string): string
  /** The record's line goes to the journal. */
  appended(line: string): void
  /** The decision may be answered. */
  recorded(ask: DecisionRequest | UnauthenticatedRequest, recorded: RecordedDecision): void
}

/** A request without a valid credential. */
export interface UnauthenticatedRequest
  extends Pick<DecisionRequest, 'entryPoint' | 'startedAt' | 'ip' | 'route' | 'method' | 'trace'> {
  readonly retryAfterMs: number
  /** Its token cannot be verified at the moment. */
  readonly isUnverifiable?: boolean | undefined
}

/** What a correction repeats of the decision that it corrects, so that usage is corrected where it was counted. */
export type DecisionContext = Readonly<ReturnType<typeof contextOf>>

/** Returns what a correction of the decision on this request would repeat. */
export const contextOf = ({ subject, keyId, route, method, meter, dims }: DecisionRequest, tsMs: number) => ({
  tsMs,
  keyId,
  plan: subject.plan.name,
  route: route.template,
  method,
  ...(meter !== undefined && { meter }),
  ...(dims !== undefined && { dims }),
  ...(subject.parent !== undefined && { parents: parentsOf(subject) }),
})

/** The ids of a subject's ancestors, the nearest first; undefined for none. */
export const parentsOf = (subject: Subject): readonly string[] | undefined =>
  subject.parent && ancestorsOf(subject).map(({ id }) => id)

/** A decision that was charged, and what is needed to refund it. */
export interface ChargedDecision {
  readonly id: string
  readonly context: DecisionContext
  readonly request: LimitRequest
  readonly decision: Decision
}
