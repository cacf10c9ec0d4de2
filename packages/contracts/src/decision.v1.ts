import type { LimitState } from '@weir/core/limits/decision.ts'
import { type DecisionRecordV1, decisionColumns, type LimitRecordV1, requiredColumns } from './decision-columns.ts'
import { type Checks, isFields, isTs, parseJson, wrongField } from './fields.ts'
import { jsonText } from './json-text.ts'
import { checksOf } from './schema.ts'
import { formatTs, parseTs } from './timestamp.ts'

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
  /** Of a decision that counts several: how many less, below zero; absent for none. */
  readonly countAdjustment?: number | undefined
}

/** A limit as a decision left it, with what it counted by beyond the subject. */
export interface CountedLimit extends LimitState {
  /** As it is to be recorded. */
  readonly by?: LimitRecordV1['by'] | undefined
}

type Quantities = NonNullable<DecisionRecordV1['units']>

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
  /** Undefined or empty where no meter measured it. */
  readonly meter?: string | undefined
  /** Undefined or empty for no labels. */
  readonly dims?: Readonly<Record<string, string>> | undefined
  /** Undefined where it holds nothing, as nearly always. */
  readonly held?: Quantities | undefined
  /** Undefined where no units but the cost are known. */
  readonly units?: Quantities | undefined
  readonly basis?: DecisionRecordV1['basis']
  /** Undefined or empty for a subject without a parent. */
  readonly parents?: readonly string[] | undefined
  readonly correction?: Correction | undefined
}

/** A field that is an object of texts; nothing for an empty one. */
function encodeTexts(name: string, texts: Readonly<Record<string, string>> | undefined): string {
  if (texts === undefined) return ''
  let text = ''
  for (const key in texts) text += `${text === '' ? `,"${name}":{` : ','}${jsonText(key)}:${jsonText(texts[key] ?? '')}`
  return text === '' ? '' : `${text}}`
}

function encodeLimits(limits: readonly CountedLimit[]): string {
  let text = ''
  for (const { name, size, used, remaining, resetMs, by, at } of limits) {
    const comma = text === '' ? '' : ','
    text += `${comma}{"name":${jsonText(name)},"size":${size},"used":${used},"remaining":${remaining},"reset_ms":${resetMs}${encodeTexts('by', by)}${at === undefined ? '' : `,"at":${jsonText(at)}`}}`
  }
  return text
}

type Circumstance = 'policy' | 'retryMs' | 'ip' | 'trace' | 'meter' | 'dims' | 'held' | 'units' | 'basis' | 'parents'

/** The fields that are written only where there is something to say. No `...rest`: it would copy all others. */
function encodeCircumstances(d: Pick<DecisionInput, Circumstance>): string {
  const { policy = -1, retryMs, ip = '', trace, meter = '', dims, held, units, basis, parents = [] } = d
  let text = policy < 0 ? '' : `,"policy":${policy}`
  if (retryMs !== undefined) text += `,"retry_ms":${retryMs}`
  if (trace !== undefined) text += `,"trace":"${trace}"`
  if (ip !== '') text += `,"ip":${jsonText(ip)}`
  if (meter !== '') text += `,"meter":${jsonText(meter)}`
  text += encodeTexts('dims', dims)
  if (held !== undefined) text += `,"held":${JSON.stringify(held)}`
  if (units !== undefined) text += `,"units":${JSON.stringify(units)}`
  if (basis !== undefined) text += `,"basis":"${basis}"`
  return parents.length === 0 ? text : `${text},"parents":[${parents.map(jsonText).join()}]`
}

function encodeCorrection(correction: Correction | undefined): string {
  if (correction === undefined) return ''
  const { corrects, adjustment, countAdjustment = 0 } = correction
  const count = countAdjustment === 0 ? '' : `,"count_adjustment":${countAdjustment}`
  return `,"corrects":"${corrects}","adjustment":${adjustment}${count}`
}

type AfterCount = 'outcome' | 'reason' | 'mode' | 'charged' | 'deniedBy' | 'shadowedBy' | 'limits'
type BeforeCount = Omit<DecisionInput, 'count' | AfterCount | Circumstance>

const beforeCount = (d: BeforeCount) =>
  `{"v":1,"id":"${d.id}","ts":"${formatTs(d.tsMs)}","subject":${jsonText(d.subject)},"key_id":${jsonText(d.keyId)},"plan":${jsonText(d.plan)},"route":${jsonText(d.route)},"method":${jsonText(d.method)},"cost":${d.cost},"count":`

const encodeShadow = (name: string | undefined) =>
  name === undefined || name === '' ? '' : `,"shadowed_by":${jsonText(name)}`

/** Returns the text after the count of such a record. */
export const encodeAfterCount = (d: Omit<DecisionInput, keyof BeforeCount | 'count'>) =>
  `,"outcome":"${d.outcome}","reason":"${d.reason}","mode":"${d.mode}","charged":"${d.charged}","denied_by":${jsonText(d.deniedBy)}${encodeShadow(d.shadowedBy)},"limits":[${encodeLimits(d.limits)}]${encodeCircumstances(d)}`

/**
 * The record as one line of compact JSON, without `journal` and `seq`, which the log that numbers it adds, and without
 * the closing brace. By a template: half the time of JSON.stringify, and it runs for every request.
 */
export const encodeDecisionOpen = (d: DecisionInput): string =>
  `${beforeCount(d)}${d.count}${encodeAfterCount(d)}${encodeCorrection(d.correction)}`

/** Returns the text before and after the count of such a record while decisions are still coalesced into it. */
export function encodeCoalescedOpen(d: Omit<DecisionInput, 'count' | 'correction'>): {
  readonly beforeCount: string
  readonly afterCount: string
} {
  return { beforeCount: beforeCount(d), afterCount: encodeAfterCount(d) }
}

/** The result of reading a record. An unreadable one is an expected outcome: topics are open to other writers. */
export type ParsedDecision =
  | { readonly kind: 'decision'; readonly decision: DecisionRecordV1; readonly tsMs: number }
  | { readonly kind: 'unreadable'; readonly reason: string }

const schemas = Object.fromEntries(Object.entries(decisionColumns).map(([name, { schema }]) => [name, schema]))
const correctionFields: Checks = { ...checksOf(schemas, [...requiredColumns, 'corrects', 'adjustment']), ts: isTs }
const {
  corrects: _,
  adjustment: __,
  count_adjustment: ___,
  ...fields
}: Checks = { ...checksOf(schemas, requiredColumns), ts: isTs }

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
