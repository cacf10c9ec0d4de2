import type { FastifyInstance } from 'fastify'
import { answerProblem, badDecisionId, decisionsUnavailable, unknownDecision } from '../http/problems.ts'
import { orUnavailable } from '../http/question-failure.ts'
import { answer, anyObject, object, operation, problems, text, textOrNull } from '../http/schemas.ts'
import { standsNow } from '../limits/current-state.ts'
import type { Ports } from '../ports.ts'
import { explained, hiddenIn } from './explain.ts'
import { policyOf } from './policy-facts.ts'

const tag = 'decisions'
const whole = (description: string) => ({ type: 'integer', description })
const wholeOrNull = (description: string) => ({ type: ['integer', 'null'], description })
const list = (description: string, items: object) => ({ type: 'array', description, items })

const oneOf = (values: readonly string[], description: string) => ({ type: 'string', enum: values, description })
const byTexts = { type: 'object', additionalProperties: { type: 'string' }, description: 'what it counted by' }

const explainedLimit = object(
  {
    name: text('of the limit'),
    because: list('the words of the policy that made it apply', { type: 'string' }),
    algorithm: text('as the policy then had it'),
    mode: text('enforce or shadow'),
    size: whole('units; of a token bucket its burst'),
    used: wholeOrNull('units; of an allowed request with its own; null: others share the count'),
    remaining: wholeOrNull('units; 0 during a block'),
    needed: whole('units that the request costs'),
    refused: { type: 'boolean', description: 'whether it alone would have refused the request' },
    by: byTexts,
    reset_at: text('when all of it is free again if nothing more is used'),
  },
  ['algorithm', 'mode'],
)
const remedy = object(
  {
    how: oneOf(['wait', 'cost', 'size', 'burst', 'plan'], 'what would have been otherwise, all else being as it was'),
    ms: whole('of wait'),
    at_most: whole('of cost: units'),
    limit: text('of size and burst'),
    at_least: whole('of size and burst: units'),
    together_with: list('limits that had to be larger as well', { type: 'string' }),
    plan: text('name of the plan'),
    assumed_unused: list('limits that the record says nothing of, and that are taken for unused', { type: 'string' }),
  },
  ['ms', 'at_most', 'limit', 'at_least', 'together_with', 'plan', 'assumed_unused'],
)
const nullable = (schema: object) => ({ ...schema, type: ['object', 'null'] })
const objectOrNull = { ...anyObject, type: ['object', 'null'] }
const changed = object({
  kind: text('limit, plan, route or subject'),
  name: text('its name'),
  before: { ...objectOrNull, description: 'the settings that differ, as they were; null: it was not there' },
  now: { ...objectOrNull, description: 'the same as they are now; null: it is not there any more' },
})
const policy = nullable(
  object(
    {
      offset: wholeOrNull('of the last change that the ingress had taken over, in weir.policy.v1; null: not recorded'),
      exact: { type: 'boolean', description: 'whether this is certainly the policy that the decision was made under' },
      change: text('id of that change, as in GET /v1/changes; absent where the history does not go back so far'),
      at: text('when it was made'),
      since_changed: list('what of it is otherwise by now', changed),
    },
    ['change', 'at'],
  ),
)
const outcomeRecord = nullable(
  object({
    status: whole('as the client got it'),
    duration_ms: { type: 'number' },
    upstream: text('its name'),
    error: text('empty: the answer went out whole'),
  }),
)

const now = nullable(
  object({
    allowed: { type: ['boolean', 'null'], description: 'whether the same request would be admitted; null: not known' },
    plan: text('that applies now'),
    denied_by: text('the first limit that would refuse; else empty'),
    limits: list(
      'those that apply now, each as it stands',
      object({
        name: text('of the limit'),
        size: whole('units'),
        used: wholeOrNull('units; null: the record does not say which count it is, or others share it'),
        remaining: wholeOrNull('the same'),
        admits: { type: ['boolean', 'null'], description: 'whether it would admit the request; null: not known' },
        retry_ms: whole('until it would; -1: waiting does not help'),
      }),
    ),
  }),
)

const explanation = object({
  id: text('as in the header Weir-Decision'),
  ts: text('RFC 3339'),
  subject: text('whose'),
  key_id: text('with'),
  plan: text('then'),
  route: text('its template'),
  method: text('of the request'),
  cost: whole('units'),
  count: whole('equal refusals that the record stands for; 0 for a correction'),
  outcome: text('allow or deny'),
  reason: text('as in the record'),
  mode: text('enforce or shadow'),
  charged: text('yes, no or unknown'),
  denied_by: text('name of the limit'),
  shadowed_by: text('name of the limit in shadow'),
  ip: text('as recorded'),
  retry_ms: wholeOrNull('the wait that was promised; -1: waiting does not help; null: none'),
  summary: text('the explanation in words'),
  limits: list('the limits of the decision', explainedLimit),
  allowed_at: textOrNull('when the request would have been admitted, if no other came first'),
  would_have_allowed: list('each by itself would have admitted it', remedy),
  blocked_by: nullable(object({ id: text('of the decision that set the block'), ts: text('RFC 3339') })),
  policy,
  now: {
    ...now,
    description: 'what it would get now; null: Redis or the policy cannot be asked, or there is no such subject',
  },
  outcome_record: outcomeRecord,
  corrects: nullable(object({ corrects: text('the decision that it corrects'), adjustment: whole('units') })),
  corrections: list(
    'of this decision',
    object({ id: text('of the record'), adjustment: whole('units'), charged: text('yes, no or unknown') }),
  ),
  alerts: list('ids of the alerts that it raised', { type: 'string' }),
})

const decisionId = text('a UUID of version 7, as in the header Weir-Decision')
const idPattern = '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-7[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$'
const isId = new RegExp(idPattern)

/** What an id in lower case says of its time; undefined for what is no UUID of version 7. */
export function timeInId(id: string): number | undefined {
  return isId.test(id) ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : undefined
}

const unavailable = decisionsUnavailable('ClickHouse did not answer. Ask again; it is safe to repeat.')

/** Metering is seldom further behind than this. */
const notMeteredRetryS = 2

/** `GET /v1/decisions/{id}`: why a request was allowed or refused, and what would have admitted it. */
export function registerDecisions(app: FastifyInstance, ports: Ports): void {
  const { decisions, policy: replica } = ports
  app.get<{ Params: { readonly id: string } }>(
    '/v1/decisions/:id',
    operation('usage', tag, 'Why a request was allowed or refused', {
      reach: 'own',
      params: object({ id: decisionId }),
      described: { params: object({ id: { ...decisionId, pattern: idPattern } }) },
      response: { 200: answer('The decision, explained', explanation), ...problems(404, 503) },
    }),
    orUnavailable(
      'a decision could not be explained',
      unavailable,
    )(async (request, reply) => {
      const id = request.params.id.toLowerCase()
      const idMs = timeInId(id)
      if (idMs === undefined) return answerProblem(reply, badDecisionId)
      const { reach } = request
      // First: what comes in between is then found, or known not to be metered yet.
      const { completeThroughMs = 0 } = await ports.askCompleteness('decisions')
      const row = await decisions.find(reach, { id, idMs })
      if (row === undefined) {
        const isMetered = idMs < completeThroughMs
        if (!isMetered) reply.header('retry-after', notMeteredRetryS)
        return answerProblem(reply, unknownDecision(isMetered))
      }
      const then = await decisions.policyAt({ offset: row.policy, tsMs: row.ts_ms, subject: row.subject })
      const now = replica.state
      const policyThen = then === undefined || !reach.isOwn ? undefined : policyOf(then)
      const related = await decisions.related({ reach, hiddenLimits: hiddenIn(policyThen, now?.policy, reach) }, row)
      const stands = await standsNow({ policy: now?.policy, peekLimits: ports.peekLimits }, row, reach).catch(
        (error: unknown) => {
          request.log.warn({ err: error }, 'how limits stand now cannot be said')
          return null
        },
      )
      return { ...explained({ row, related, then, now }, reach), now: stands }
    }),
  )
}
