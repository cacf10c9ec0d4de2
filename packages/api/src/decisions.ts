import { decisionColumns } from '@weir/contracts/decision-columns.ts'
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

const countedBy = textsByName('what it counted by')

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
] as const
type Shown = { [Name in (typeof shownColumns)[number]]: TUnsafe<ValueOf<(typeof decisionColumns)[Name]['schema']>> }
const shown = Object.fromEntries(
  shownColumns.map((name) => [name, Type.Unsafe({ type: 'string', ...decisionColumns[name].schema })]),
) as Shown
const fields = {
  ...shown,
  ts: text('RFC 3339'),
  retry_ms: wholeOrNull('the wait that was promised; -1: waiting does not help; null: none'),
}
const outcomeRecord = nullable(
  object({
    status: whole('as the client got it'),
    duration_ms: Type.Number(),
    upstream: text('its name'),
    error: text('empty: the answer went out whole'),
  }),
  'what the upstream answered; null: nothing, or not yet',
)
const corrections = list(
  object({ id: text('of the record'), adjustment: whole('units'), charged: text('yes, no or unknown') }),
  'of this decision',
)
/** A decision, as a list and a stream show it. */
const shownDecision = object({
  ...fields,
  shadowed_by: optional(text('name of the limit in shadow; absent for callers limited to subjects')),
  limits: optional(
    list(
      object({
        name: text('of the limit'),
        size: whole('units'),
        used: whole('units'),
        remaining: whole('units'),
        reset_ms: whole('from `ts` on'),
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
  summary: 'Decisions, the newest first',
  query: decisionParameters,
  answers: { 200: answer('A page of decisions', decisionPage) },
  problems: [422, 503, 504],
})

const events =
  '`decision` (with the `id` to go on from), `sums` every second, `dropped` where there were more than 200 decisions a second, ' +
  '`gap` where decisions are missing, and a comment every 15 seconds'
/** Decisions as they are made. */
export const streamDecisions = operation('GET /v1/decisions/stream', {
  tag,
  scope: 'usage',
  reach: 'own',
  isLive: true,
  isParsed: true,
  summary: 'Decisions as they are made',
  query: streamParameters,
  answers: {
    // OpenAPI 3.1 has no schema of one event: what is here, readers take for the event's or for the text's.
    200: media(`Server-sent events: ${events}`, { 'text/event-stream': { description: 'server-sent events' } }),
  },
  problems: [429],
})

const explainedLimit = object({
  name: text('of the limit'),
  because: texts('the words of the policy that made it apply'),
  algorithm: optional(text('as the policy then had it')),
  mode: optional(text('enforce or shadow')),
  size: whole('units; of a token bucket its burst'),
  used: wholeOrNull('units; of an allowed request with its own; null: others share the count'),
  remaining: wholeOrNull('units; 0 during a block'),
  needed: whole('units that the request costs'),
  refused: flag('whether it alone would have refused the request'),
  by: countedBy,
  reset_at: text('when all of it is unused, without further requests'),
})
/** How a limit stood when a decision was made. */
export type ExplainedLimit = Of<typeof explainedLimit>
const remedy = object({
  how: oneOf(['wait', 'cost', 'size', 'burst', 'plan'], 'what would have been otherwise, all else being as it was'),
  ms: optional(whole('of wait')),
  at_most: optional(whole('of cost: units')),
  limit: optional(text('of size and burst')),
  at_least: optional(whole('of size and burst: units')),
  together_with: optional(texts('limits that had to be larger as well')),
  plan: optional(text('name of the plan')),
  assumed_unused: optional(texts('limits that the record says nothing of, and that are taken for unused')),
})
/** What would have admitted a refused request. */
export type Remedy = Of<typeof remedy>

const changedEntity = object({
  kind: text('limit, plan, route or subject'),
  name: text('its name'),
  before: anyObjectOrNull('the settings that differ, as they were; null: it was not there'),
  now: anyObjectOrNull('the same as they are now; null: it is not there any more'),
})
const policyThen = nullable(
  object({
    offset: wholeOrNull('of the last change that the ingress had taken over, in weir.policy.v1; null: not recorded'),
    exact: flag('whether this is certainly the policy that the decision was made under'),
    change: optional(
      text('id of that change, as in GET /v1/changes; absent where the history does not go back so far'),
    ),
    at: optional(text('when it was made')),
    since_changed: list(changedEntity, 'what of it is otherwise by now'),
  }),
)
const now = nullable(
  object({
    allowed: flagOrNull('whether the same request would be admitted; null: not known'),
    plan: text('that applies now'),
    denied_by: text('the first limit that would refuse; else empty'),
    limits: list(
      object({
        name: text('of the limit'),
        size: whole('units'),
        capacity: whole('the most that can be used at one moment'),
        used: wholeOrNull('units; null: the record does not say which count it is, or others share it'),
        remaining: wholeOrNull('the same'),
        admits: flagOrNull('whether it would admit the request; null: not known'),
        retry_ms: whole('until it would; -1: waiting does not help'),
      }),
      'those that apply now, each as it stands',
    ),
  }),
  'what it would get now; null: Redis or the policy cannot be asked, or there is no such subject',
)

const explanation = object({
  ...fields,
  shadowed_by: text('name of the limit in shadow'),
  summary: text('the explanation in words'),
  limits: list(explainedLimit, 'the limits of the decision'),
  allowed_at: textOrNull('when the request would have been admitted, if no other came first'),
  would_have_allowed: list(remedy, 'each by itself would have admitted it'),
  blocked_by: nullable(object({ id: text('of the decision that set the block'), ts: text('RFC 3339') })),
  policy: policyThen,
  now,
  outcome_record: outcomeRecord,
  corrects: nullable(object({ corrects: text('the decision that it corrects'), adjustment: whole('units') })),
  corrections,
  alerts: texts('ids of the alerts that it raised'),
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
  summary: 'Why a request was allowed or refused',
  params: {
    id: text('a UUID of version 7, as in the header Weir-Decision', { described: { pattern: decisionIdPattern } }),
  },
  answers: { 200: answer('The decision, explained', explanation) },
  problems: [404, 503],
})
