import { type DecisionRecordV1, decisionColumns } from '@weir/contracts/decision-columns.ts'
import type { ValueOf } from '@weir/contracts/schema.ts'
import type { TUnsafe } from 'typebox'
import { answer, media, operation } from './operation.ts'
import { decisionParameters, streamParameters } from './query/parameters.ts'
import {
  anyObjectOrNull,
  flag,
  flagOrNull,
  list,
  next,
  nullable,
  type Of,
  object,
  oneOf,
  optional,
  text,
  textOrNull,
  texts,
  textsByName,
  whole,
  wholeOrNull,
} from './schema.ts'
import { Type } from './type.ts'
import { completeness } from './usage.ts'

const tag = 'decisions'

const countedBy = textsByName('what the limit counted by')

/** The columns of the record that answers have as they are stored, in this order. */
export const shownColumns = [
  'id',
  'subject',
  'key_id',
  'plan',
  'route',
  'method',
  'cost',
  'count',
  'outcome',
  'reason',
  'mode',
  'charged',
  'denied_by',
  'ip',
  'meter',
  'dims',
  'held',
  'units',
  'basis',
] as const
type Shown = { [Name in (typeof shownColumns)[number]]: TUnsafe<ValueOf<(typeof decisionColumns)[Name]['schema']>> }
const shown = Object.fromEntries(
  shownColumns.map((name) => [name, Type.Unsafe({ type: 'string', ...decisionColumns[name].schema })]),
) as Shown
const fields = {
  ...shown,
  ts: text('RFC 3339'),
  retry_ms: wholeOrNull('the wait given to the caller; -1: waiting does not help; null: none'),
}
const outcomeRecord = nullable(
  object({
    status: whole('HTTP status sent to the client'),
    duration_ms: Type.Number(),
    upstream: text('name of the upstream'),
    error: text('empty: the response was sent completely'),
  }),
  'response of the upstream; null: none, or none yet',
)
const corrections = list(
  object({
    id: text('record id'),
    adjustment: whole('units'),
    count_adjustment: whole('requests of a lease that were not made, below zero'),
    charged: text('yes, no or unknown'),
    units: Type.Unsafe<DecisionRecordV1['units']>(decisionColumns.units.schema),
    basis: Type.Unsafe<DecisionRecordV1['basis']>(decisionColumns.basis.schema),
    dims: Type.Unsafe<DecisionRecordV1['dims']>(decisionColumns.dims.schema),
  }),
  'corrections of this decision',
)
/** A decision, as a list and a stream show it. */
const shownDecision = object({
  ...fields,
  shadowed_by: optional(text('name of the shadow limit; absent for callers limited to subjects')),
  limits: optional(
    list(
      object({
        name: text('limit name'),
        size: whole('units'),
        used: whole('units'),
        remaining: whole('units'),
        reset_ms: whole('milliseconds from `ts` until the count resets'),
        by: countedBy,
      }),
      'absent for callers limited to subjects',
    ),
  ),
})
/** A decision, as a list and a stream show it. */
export type ShownDecision = Of<typeof shownDecision>
const listedDecision = object({ ...shownDecision.properties, outcome_record: outcomeRecord, corrections })
/** A decision of a list. */
export type ListedDecision = Of<typeof listedDecision>
const decisionPage = object({
  from: text('RFC 3339'),
  to: text('RFC 3339'),
  ...completeness,
  next,
  rows: list(listedDecision),
})
/** A page of decisions. */
export type DecisionPage = Of<typeof decisionPage>

/** Decisions one by one. */
export const listDecisions = operation('GET /v1/decisions', {
  tag,
  scope: 'usage',
  reach: 'own',
  isParsed: true,
  summary: 'List decisions, newest first',
  query: decisionParameters,
  answers: { 200: answer('A page of decisions', decisionPage) },
  problems: [422, 503, 504],
})

const events =
  '`decision` (with an `id` to resume from), `sums` every second, `dropped` above 200 decisions a second, ' +
  '`gap` if decisions are missing, and a comment every 15 seconds'
/** Decisions as they are made. */
export const streamDecisions = operation('GET /v1/decisions/stream', {
  tag,
  scope: 'usage',
  reach: 'own',
  isLive: true,
  isParsed: true,
  summary: 'Stream decisions live',
  query: streamParameters,
  answers: {
    // OpenAPI 3.1 has no schema of one event: what is here, readers take for the event's or for the text's.
    200: media(`Server-sent events: ${events}`, { 'text/event-stream': { description: 'server-sent events' } }),
  },
  problems: [429],
})

const explainedLimit = object({
  name: text('limit name'),
  because: texts('the parts of the policy that made the limit apply'),
  algorithm: optional(text('as in the policy at that time')),
  mode: optional(text('enforce or shadow')),
  unit: optional(text('unit that the limit counts; absent: costs')),
  currency: optional(text('of a limit of money: ISO 4217; its units are billionths of it')),
  size: whole('units; for a token bucket, its burst'),
  used: wholeOrNull(
    'units, including those of an allowed request, and the most where several share the record; null: others share the count',
  ),
  remaining: wholeOrNull('units; 0 during a block'),
  needed: whole('units that the request cost'),
  refused: flag('whether this limit alone would have refused the request'),
  by: countedBy,
  reset_at: text('when the limit is completely unused, without further requests'),
})
/** How a limit stood when a decision was made. */
export type ExplainedLimit = Of<typeof explainedLimit>
const remedy = object({
  how: oneOf(['wait', 'cost', 'size', 'burst', 'plan'], 'the one change that would have admitted the request'),
  ms: optional(whole('for wait: milliseconds')),
  at_most: optional(whole('for cost: units')),
  limit: optional(text('for size and burst: the limit')),
  at_least: optional(whole('for size and burst: units')),
  together_with: optional(texts('limits that would also have to be larger')),
  plan: optional(text('name of the plan')),
  assumed_unused: optional(texts('limits missing from the record, assumed to be unused')),
})
/** What would have admitted a refused request. */
export type Remedy = Of<typeof remedy>

const changedEntity = object({
  kind: text('limit, plan, route or subject'),
  name: text('name of the entity'),
  before: anyObjectOrNull('the settings that differ, before; null: did not exist'),
  now: anyObjectOrNull('the same settings now; null: no longer exists'),
})
const policyThen = nullable(
  object({
    offset: wholeOrNull('offset in weir.policy.v1 of the last change applied by the ingress; null: not recorded'),
    exact: flag('whether the decision was certainly made under this policy'),
    change: optional(text('id of that change, as in GET /v1/changes; absent if older than the history')),
    at: optional(text('when the change was made')),
    since_changed: list(changedEntity, 'relevant parts of the policy that have changed since'),
  }),
)
const now = nullable(
  object({
    allowed: flagOrNull('whether the same request would be admitted; null: unknown'),
    plan: text('plan that applies now'),
    denied_by: text('the first limit that would refuse the request; else empty'),
    limits: list(
      object({
        name: text('limit name'),
        size: whole('units'),
        capacity: whole('the most units that can be used at once'),
        used: wholeOrNull('units; null: the record does not identify the count, or others share it'),
        remaining: wholeOrNull('units; null as for `used`'),
        admits: flagOrNull('whether this limit would admit the request; null: unknown'),
        retry_ms: whole('milliseconds until this limit would admit the request; -1: waiting does not help'),
      }),
      'current state of the limits that apply now',
    ),
  }),
  'the outcome of the same request now; null: Redis or the policy is unreachable, or the subject no longer exists',
)

const priceLine = object({
  card: text('the rate card, and the unit of the amount'),
  currency: text('ISO 4217'),
  unit: text('what is priced'),
  quantity: whole('how much of it, without parts that have lines of their own'),
  price: text('of one: an exact decimal'),
  amount: text('their product'),
  entry: text('the pattern of the entry; empty: of every request'),
  from: text('the time from which the entry applies'),
})

const explanation = object({
  ...fields,
  shadowed_by: text('name of the shadow limit'),
  summary: text('the explanation in words'),
  limits: list(explainedLimit, 'the limits of the decision'),
  allowed_at: textOrNull('when the request would have been admitted, if no other had come first'),
  would_have_allowed: list(remedy, 'changes, each of which alone would have admitted the request'),
  blocked_by: nullable(object({ id: text('id of the decision that set the block'), ts: text('RFC 3339') })),
  prices: list(priceLine, 'how rate cards priced what was used; their sum is rounded once to a billionth'),
  policy: policyThen,
  now,
  outcome_record: outcomeRecord,
  corrects: nullable(object({ corrects: text('id of the corrected decision'), adjustment: whole('units') })),
  corrections,
  alerts: texts('ids of the alerts that this decision raised'),
})
/** Why a request was allowed or refused. */
export type Explanation = Of<typeof explanation>

/** What an id of a decision is. */
export const decisionIdPattern =
  '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-7[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$'
/** Why a request was allowed or refused, and what would have admitted it. */
export const explainDecision = operation('GET /v1/decisions/:id', {
  tag,
  scope: 'usage',
  reach: 'own',
  summary: 'Explain why a request was allowed or refused',
  params: { id: text('UUID version 7, as in the header Weir-Decision', { described: { pattern: decisionIdPattern } }) },
  answers: { 200: answer('The decision, explained', explanation) },
  problems: [404, 503],
})
