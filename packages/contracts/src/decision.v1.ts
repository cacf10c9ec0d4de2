import { type Charged, type LimitState, type Reason, reasons } from '@weir/core/limits/decision.ts'
import { type Checks, isCount, isFields, isOneOf, isOptional, isText, isTs, parseJson, wrongField } from './fields.ts'
import { jsonText } from './json-text.ts'
import { formatTs, parseTs } from './timestamp.ts'

/** One limit as the record carries it. */
export interface LimitRecordV1 {
  readonly name: string
  readonly size: number
  readonly used: number
  readonly remaining: number
  readonly reset_ms: number
  /**
   * What it counted by beyond the subject, by the texts of its scope: `{"ip":"192.0.2.1"}`. Values of headers, query
   * parameters and the like are hashed unless the limit says otherwise. Absent for none, and in older records.
   */
  readonly by?: Readonly<Record<string, string>>
}

/** The decision record of `weir.decisions.v1` and, column by column, of ClickHouse. Key = subject. */
export interface DecisionRecordV1 {
  readonly v: 1
  /** UUID version 7. */
  readonly id: string
  /** `YYYY-MM-DD hh:mm:ss.SSS`, UTC, by the clock of the ingress. */
  readonly ts: string
  readonly subject: string
  readonly key_id: string
  readonly plan: string
  /** The template, never the path of the request. */
  readonly route: string
  readonly method: string
  readonly cost: number
  /** 1 unless denials were coalesced. */
  readonly count: number
  /** The outcome that the request really got. */
  readonly outcome: 'allow' | 'deny'
  readonly reason: Reason
  /** `shadow`: it was allowed, and `reason` and `denied_by` name a shadow limit that would have denied it. */
  readonly mode: 'enforce' | 'shadow'
  readonly charged: Charged
  /**
   * Name of the limit that denied; of an allowed request, of the limit that degraded it or else of the one in shadow;
   * else empty.
   */
  readonly denied_by: string
  /**
   * Of an allowed request: name of the first limit in shadow that would have denied it. Absent for none, and in older
   * records.
   */
  readonly shadowed_by?: string
  /** The limits of the decision, those in shadow too. */
  readonly limits: readonly LimitRecordV1[]
  /**
   * Offset in `weir.policy.v1` of the last change that the ingress had taken over. Absent where no change is known, and
   * in older records.
   */
  readonly policy?: number
  /**
   * Of a denial: milliseconds after which the request would be admitted if no other comes first; -1 where waiting does
   * not help. Absent for what was allowed, and in older records.
   */
  readonly retry_ms?: number
  /**
   * The caller's address as `WEIR_RECORD_ADDRESS` says. Absent unless a limit of the decision counts by address, and in
   * older records.
   */
  readonly ip?: string
  /**
   * Of a decision that is traced: the ids of the trace and of the span that the request is, `TRACE-SPAN` in hex. Not
   * stored.
   */
  readonly trace?: string
  /**
   * Only in a correction, see `Correction`: the id of the decision that it corrects. Always together with `adjustment`.
   */
  readonly corrects?: string
  /**
   * Units by which it changes what that decision's requests count as used; 0 when only Redis's counters were corrected.
   */
  readonly adjustment?: number
  /** Process start that wrote the record. */
  readonly journal: string
  /** Contiguous per journal and partition. */
  readonly seq: number
}

/**
 * The fields that make a record a correction of an earlier decision. Caller, route and `ts` of such a record are the
 * corrected decision's, so that usage is corrected where it was counted; its `count` and `cost` are 0, its outcome is
 * allow, and `charged` says whether Redis counts the corrected decision's units now. `limits` are those whose counts
 * were changed, with `reset_ms` from `ts` on.
 */
export interface Correction {
  /** Id of the corrected decision, a UUID. */
  readonly corrects: string
  /** A safe integer. */
  readonly adjustment: number
}

/** A limit as a decision left it, with what it counted by beyond the subject. */
export interface CountedLimit extends LimitState {
  /** As it is to be recorded. */
  readonly by?: LimitRecordV1['by'] | undefined
}

/** A decision as the ingress has it. Texts are bounded, and numbers are safe integers. */
export interface DecisionInput
  extends Pick<DecisionRecordV1, 'id' | 'subject' | 'plan' | 'route' | 'method' | 'cost' | 'count'>,
    Pick<DecisionRecordV1, 'outcome' | 'reason' | 'mode' | 'charged'> {
  readonly tsMs: number
  readonly keyId: string
  readonly deniedBy: string
  readonly shadowedBy?: string
  readonly limits: readonly CountedLimit[]
  /** Undefined or negative where no change of the policy is known. */
  readonly policy?: number | undefined
  /** Undefined for what was allowed. */
  readonly retryMs?: number | undefined
  /** Undefined or empty for none. */
  readonly ip?: string | undefined
  /** Undefined for what is not traced, as nearly always. */
  readonly trace?: string | undefined
  readonly correction?: Correction | undefined
}

function encodeBy(by: LimitRecordV1['by']): string {
  if (by === undefined) return ''
  let text = ''
  for (const part in by) text += `${text === '' ? ',"by":{' : ','}${jsonText(part)}:${jsonText(by[part] ?? '')}`
  return text === '' ? '' : `${text}}`
}

function encodeLimits(limits: readonly CountedLimit[]): string {
  let text = ''
  for (const { name, size, used, remaining, resetMs, by } of limits) {
    const comma = text === '' ? '' : ','
    text += `${comma}{"name":${jsonText(name)},"size":${size},"used":${used},"remaining":${remaining},"reset_ms":${resetMs}${encodeBy(by)}}`
  }
  return text
}

type Circumstance = 'policy' | 'retryMs' | 'ip' | 'trace'

/** The fields that are written only where there is something to say. */
function encodeCircumstances({ policy = -1, retryMs, ip = '', trace }: Pick<DecisionInput, Circumstance>) {
  let text = policy < 0 ? '' : `,"policy":${policy}`
  if (retryMs !== undefined) text += `,"retry_ms":${retryMs}`
  if (trace !== undefined) text += `,"trace":"${trace}"`
  return ip === '' ? text : `${text},"ip":${jsonText(ip)}`
}

const encodeCorrection = (correction: Correction | undefined) =>
  correction === undefined ? '' : `,"corrects":"${correction.corrects}","adjustment":${correction.adjustment}`

type AfterCount = 'outcome' | 'reason' | 'mode' | 'charged' | 'deniedBy' | 'shadowedBy' | 'limits'
type BeforeCount = Omit<DecisionInput, 'count' | AfterCount | Circumstance>

const beforeCount = (d: BeforeCount) =>
  `{"v":1,"id":"${d.id}","ts":"${formatTs(d.tsMs)}","subject":${jsonText(d.subject)},"key_id":${jsonText(d.keyId)},"plan":${jsonText(d.plan)},"route":${jsonText(d.route)},"method":${jsonText(d.method)},"cost":${d.cost},"count":`

const encodeShadow = (name: string | undefined) =>
  name === undefined || name === '' ? '' : `,"shadowed_by":${jsonText(name)}`

const afterCount = (d: Omit<DecisionInput, keyof BeforeCount | 'count'>) =>
  `,"outcome":"${d.outcome}","reason":"${d.reason}","mode":"${d.mode}","charged":"${d.charged}","denied_by":${jsonText(d.deniedBy)}${encodeShadow(d.shadowedBy)},"limits":[${encodeLimits(d.limits)}]${encodeCircumstances(d)}`

/**
 * The record as one line of compact JSON, without `journal` and `seq`, which the log that numbers it adds, and without
 * the closing brace. By a template: half the time of JSON.stringify, and it runs for every request.
 */
export function encodeDecisionOpen(d: DecisionInput): string {
  return `${beforeCount(d)}${d.count}${afterCount(d)}${encodeCorrection(d.correction)}`
}

/** Returns the text before and after the count of such a record while denials are still coalesced into it. */
export function encodeCoalescedOpen(d: Omit<DecisionInput, 'count' | 'correction'>): {
  readonly beforeCount: string
  readonly afterCount: string
} {
  return { beforeCount: beforeCount(d), afterCount: afterCount(d) }
}

/** The result of reading a record. An unreadable one is an expected outcome: topics are open to other writers. */
export type ParsedDecision =
  | { readonly kind: 'decision'; readonly decision: DecisionRecordV1; readonly tsMs: number }
  | { readonly kind: 'unreadable'; readonly reason: string }

const isTexts = (value: unknown) => isFields(value) && Object.values(value).every(isText)

const limitFields: Checks = {
  name: isText,
  size: isCount,
  used: isCount,
  remaining: isCount,
  reset_ms: isCount,
  by: isOptional(isTexts),
}

const fields: Checks = {
  v: isOneOf([1]),
  id: isText,
  ts: isTs,
  subject: isText,
  key_id: isText,
  plan: isText,
  route: isText,
  method: isText,
  cost: isCount,
  count: isCount,
  outcome: isOneOf(['allow', 'deny']),
  reason: isOneOf(reasons),
  mode: isOneOf(['enforce', 'shadow']),
  charged: isOneOf(['yes', 'no', 'unknown']),
  denied_by: isText,
  shadowed_by: isOptional(isText),
  limits: (value) => Array.isArray(value) && value.every((one) => wrongField(one, limitFields) === undefined),
  policy: isOptional(isCount),
  retry_ms: isOptional((value) => value === -1 || isCount(value)),
  ip: isOptional(isText),
  trace: isOptional(isText),
  journal: isText,
  seq: isCount,
}
const correctionFields: Checks = { ...fields, corrects: isText, adjustment: Number.isSafeInteger }

/** Returns the first field that is missing or wrong. A correction has both of its fields, any other record none. */
const wrongIn = (value: unknown) =>
  wrongField(value, isFields(value) && ('corrects' in value || 'adjustment' in value) ? correctionFields : fields)

const isDecision = (value: unknown): value is DecisionRecordV1 => wrongIn(value) === undefined

/** Reads one record's value. Never throws. */
export function parseDecision(value: Buffer): ParsedDecision {
  const parsed = parseJson(value.toString('utf8'))
  if (parsed === undefined) return { kind: 'unreadable', reason: 'not JSON' }
  if (!isDecision(parsed)) return { kind: 'unreadable', reason: `field ${wrongIn(parsed)} is missing or wrong` }
  return { kind: 'decision', decision: parsed, tsMs: parseTs(parsed.ts) ?? 0 }
}
