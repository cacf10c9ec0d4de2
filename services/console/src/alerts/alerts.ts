import type { ListedAlert } from '@weir/clickhouse/delivery-queries.ts'
import {
  type DeliveryOutcome,
  type DeliveryV1,
  deliveryAttemptsMax,
  deliveryOutcomes,
} from '@weir/contracts/delivery.v1.ts'
import { formatTs } from '@weir/contracts/timestamp.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { readSpan } from '@weir/core/usage/read-parameters.ts'
import { endpointNameOf, targetsOf } from '@weir/policy/contact-targets.ts'
import type { JsonValue } from '@weir/policy/entities.ts'
import type { Endpoint } from '@weir/policy/policy.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { subjectForbidden } from '../http/authorize.ts'
import { cursorInvalid } from '../http/cursor.ts'
import { alertsUnavailable, answerProblem, unknownName } from '../http/problems.ts'
import { orUnavailable } from '../http/question-failure.ts'
import {
  answer,
  anyObject,
  closed,
  object,
  operation,
  optionalBody,
  type PageQuery,
  page,
  pageOf,
  pageQuery,
  problems,
  text,
  textOrNull,
} from '../http/schemas.ts'
import type { Ports } from '../ports.ts'
import { time } from '../usage/usage-schemas.ts'
import { hiddenLimitsOf, ownData, summaryOf } from './own-alerts.ts'

const tag = 'alerts'
const dayMs = 86_400_000
/** Without `from`, so far back. */
const lookBackMs = 7 * dayMs
/** Deliveries of one bulk request; a caller with more repeats it. */
const redeliveredMax = 10_000
const redeliveredShown = redeliveredMax.toLocaleString('en')

const filterQuery = {
  from: text('as in /v1/usage; a week before `to` if absent'),
  to: text('the same; now if absent'),
  time_zone: text('where dates begin; UTC if absent'),
  subject: text('whose'),
  type: text('such as `weir.quota.reached`'),
  endpoint: text('only deliveries to this endpoint; of a contact’s address `ENDPOINT/KIND-HASH`'),
} as const
/** For readers of the description: the handlers word what is no time. */
const describedFilter = {
  ...filterQuery,
  from: time(filterQuery.from.description),
  to: time(filterQuery.to.description),
}

interface FilterQuery {
  readonly from?: string
  readonly to?: string
  readonly time_zone?: string
  readonly subject?: string
  readonly type?: string
  readonly endpoint?: string
}

/** Only lists filter by what deliveries came to: what starts again is what failed. */
const outcomeQuery = {
  outcome: {
    type: 'array',
    minItems: 1,
    maxItems: deliveryOutcomes.length,
    items: { type: 'string', enum: deliveryOutcomes },
    description:
      'only those whose last outcome at an endpoint, or at `endpoint`, is this; several times: any of these. Not, as `endpoint`, for callers limited to subjects',
  },
}
interface ListQuery extends FilterQuery, PageQuery {
  readonly outcome?: readonly DeliveryOutcome[]
}

const alertProperties = {
  id: text('as subscribers and receivers get it'),
  type: text('`ce_type`'),
  subject: text('whom it is about'),
  time: text('when it was raised'),
  state: text('`raised`, or `late`: its period was over, and no subscriber was notified'),
  summary: text('the same in a sentence'),
  data: { ...anyObject, description: 'what it says' },
}

const delivery = object({
  endpoint: text('its name in the policy; of a contact’s address `ENDPOINT/KIND-HASH`'),
  attempt: { type: 'integer', description: '0: nothing sent yet' },
  at: text('when'),
  outcome: text('queued, requested, delivered, failed, given_up, dropped, silenced'),
  status: { type: 'integer', description: 'of the answer; 0: none' },
  ms: { type: 'integer' },
  error: text('why it failed, or which silence it falls under'),
  next_try: textOrNull('when it is tried again'),
  answer: text('the beginning of the answer’s body; empty for endpoints with allowPrivate'),
})

const attemptsMax = { type: 'integer', description: 'attempts at an endpoint before it is given up, or 4 days' }

const accepted = object({ requested: { type: 'integer', description: 'deliveries that start again' } })

/** Reads which alerts are meant; a text says what is wrong with their time. */
function readFilter({ from, to, time_zone, ...rest }: FilterQuery, nowMs: number) {
  const problems: string[] = []
  // An alert of this millisecond is among them.
  const { fromMs, toMs } = readSpan({ from, to, time_zone }, { nowMs: nowMs + 1, spanMs: lookBackMs }, problems)
  return problems.length > 0 ? problems.join('; ') : { ...rest, fromMs, toMs }
}

/** `after` is the time and the id of the last alert of the page before. Undefined for what no page ends with. */
function parseAfter(after: string): { timeMs: number; id: string } | undefined {
  const [, time = '', id = ''] = /^(\d{4}-\S+) ([0-9a-f-]{36})$/.exec(after) ?? []
  const timeMs = Date.parse(time)
  return Number.isNaN(timeMs) ? undefined : { timeMs, id }
}

const noAnswer = 'ClickHouse or Kafka did not answer. Ask again; it is safe to repeat.'

const orAlertsUnavailable = orUnavailable('alerts unavailable', (error) =>
  alertsUnavailable(error instanceof WeirError && error.code === 'KAFKA_DENIED' ? error.message : noAnswer),
)

function requestedRow(
  { alert_id, alert_type, subject, endpoint }: Pick<DeliveryV1, 'alert_id' | 'alert_type' | 'subject' | 'endpoint'>,
  nowMs: number,
): DeliveryV1 {
  const at = formatTs(nowMs)
  const nothingSent = { attempt: 0, outcome: 'requested', status: 0, ms: 0, error: '', answer: '' } as const
  return { alert_id, alert_type, subject, endpoint, at, next_try: at, ...nothingSent }
}

const oneAlert = object({ id: { type: 'string', format: 'uuid' } })

/** Deliveries name the operator's endpoints and what they answered: who is limited to subjects gets none of them. */
function registerReading(app: FastifyInstance, { alerts, clock, policy }: Ports): void {
  const within = (reach: Reach) => ({
    reach,
    hiddenLimits: reach.isOwn ? hiddenLimitsOf(policy.state?.policy, reach) : [],
  })
  const shown = ({ isOwn }: Reach, { data: text, ...alert }: Omit<ListedAlert, 'deliveries'>) => {
    const whole: JsonValue = JSON.parse(text)
    const data = isOwn ? ownData(policy.state?.policy, whole) : whole
    return { ...alert, data, summary: summaryOf(alert, whole, data) }
  }
  const deliveries = { type: 'object', additionalProperties: { type: 'string' } }
  app.get<{ Querystring: ListQuery }>(
    '/v1/alerts',
    operation('read', tag, 'Alerts, newest first, with the last outcome at each endpoint', {
      reach: 'own',
      query: { ...filterQuery, ...outcomeQuery, ...pageQuery },
      described: { querystring: closed({ ...describedFilter, ...outcomeQuery, ...pageQuery }) },
      response: { 200: answer('A page', page(object({ ...alertProperties, deliveries }))), ...problems(422, 503, 504) },
    }),
    orAlertsUnavailable(async (request, reply) => {
      const { after, limit, ...filter } = request.query
      const { reach } = request
      const asksOfDeliveries = reach.isOwn && (filter.outcome ?? filter.endpoint) !== undefined
      if (asksOfDeliveries || (filter.subject !== undefined && !reach.covers([filter.subject]))) {
        return answerProblem(reply, subjectForbidden(request))
      }
      const wanted = readFilter(filter, clock.nowMs())
      if (typeof wanted === 'string') return answerProblem(reply, badRequest(wanted))
      const place = after === undefined ? undefined : parseAfter(after)
      if (after !== undefined && place === undefined) return answerProblem(reply, cursorInvalid)
      const found = (await alerts.list(within(reach), wanted, { limit: limit + 1, after: place })).map(
        ({ deliveries: last, ...alert }) => ({
          ...shown(reach, alert),
          deliveries: reach.isOwn ? {} : Object.fromEntries(last),
        }),
      )
      return pageOf(found, limit, ({ time, id }) => `${time} ${id}`)
    }),
  )

  app.get<{ Params: { readonly id: string } }>(
    '/v1/alerts/:id',
    operation('read', tag, 'One alert, with every step of its deliveries', {
      reach: 'own',
      params: oneAlert,
      response: {
        200: answer(
          'The alert',
          object({ ...alertProperties, attempts_max: attemptsMax, deliveries: { type: 'array', items: delivery } }),
        ),
        ...problems(404, 503),
      },
    }),
    orAlertsUnavailable(async ({ params: { id }, reach }, reply) => {
      const found = await alerts.find(within(reach), id)
      if (found === undefined) return answerProblem(reply, unknownName('alert', id))
      const deliveries = reach.isOwn ? [] : found.deliveries
      return { ...shown(reach, found.alert), attempts_max: deliveryAttemptsMax, deliveries }
    }),
  )
}

const endpointOf = ({ policy }: Ports, name: string) => policy.state?.policy.endpoints.get(endpointNameOf(name))

/** Returns the targets of an endpoint for a subject: of one of type `subject` the addresses of its contact. */
function targetsNamed(ports: Ports, endpoint: Endpoint, subject: string): readonly string[] {
  if (endpoint.type !== 'subject') return [endpoint.name]
  const policy = ports.policy.state?.policy
  return policy === undefined ? [] : targetsOf(endpoint, policy, subject).map(({ name }) => name)
}

function registerRedelivery(app: FastifyInstance, ports: Ports): void {
  const { alerts, clock } = ports
  app.post<{ Params: { readonly id: string }; Body: { readonly endpoint?: string } | null }>(
    '/v1/alerts/:id/redeliver',
    operation('write', tag, 'Deliver an alert once more, under the same id', {
      params: oneAlert,
      body: optionalBody({ endpoint: text('only there; without it wherever it went, or was to go') }),
      response: { 202: answer('It is queued', accepted), ...problems(404, 503) },
    }),
    orAlertsUnavailable(async ({ params: { id }, body, reach }, reply) => {
      const found = await alerts.find({ reach, hiddenLimits: [] }, id)
      if (found === undefined) return answerProblem(reply, unknownName('alert', id))
      const { type, subject } = found.alert
      const wanted = body?.endpoint
      const only = wanted === undefined ? undefined : endpointOf(ports, wanted)
      if (wanted !== undefined && only === undefined) return answerProblem(reply, unknownName('endpoint', wanted))
      const past = new Set(found.deliveries.map(({ endpoint }) => endpoint))
      const targets =
        only === undefined
          ? [...past].filter((name) => endpointOf(ports, name) !== undefined)
          : targetsNamed(ports, only, subject).filter((name) => wanted === only.name || wanted === name)
      const rows = targets.map((endpoint) =>
        requestedRow({ alert_id: found.alert.id, alert_type: type, subject, endpoint }, clock.nowMs()),
      )
      return reply.code(202).send({ requested: await alerts.request(rows) })
    }),
  )

  app.post<{ Body: FilterQuery }>(
    '/v1/deliveries/redeliver',
    operation('write', tag, `Deliver once more what was given up or dropped, ${redeliveredShown} at a time`, {
      body: closed(filterQuery, ['from']),
      described: { body: closed(describedFilter, ['from']) },
      response: { 202: answer('They are queued', accepted), ...problems(503) },
    }),
    orAlertsUnavailable(async ({ body }, reply) => {
      const filter = readFilter(body, clock.nowMs())
      if (typeof filter === 'string') return answerProblem(reply, badRequest(filter))
      const found = await alerts.listFailed(filter, redeliveredMax)
      const nowMs = clock.nowMs()
      const known = found.filter(({ endpoint }) => endpointOf(ports, endpoint) !== undefined)
      const rows = known.map((one) => requestedRow(one, nowMs))
      return reply.code(202).send({ requested: await alerts.request(rows) })
    }),
  )
}

/** `/v1/alerts`, `/v1/deliveries/redeliver` and `/v1/endpoints/{name}/test`. */
export function registerAlerts(app: FastifyInstance, ports: Ports): void {
  registerReading(app, ports)
  registerRedelivery(app, ports)
  const sent = object({ id: text('of the alert, which tells how it went') })
  app.post<{ Params: { readonly name: string }; Body: { readonly subject?: string } | null }>(
    '/v1/endpoints/:name/test',
    operation('write', tag, 'Send an endpoint a test; one that was disabled and takes it is enabled', {
      params: object({ name: text('in the policy') }),
      body: optionalBody({ subject: text('whose contact, at an endpoint of type `subject`, which needs it') }),
      response: { 202: answer('It is on its way', sent), ...problems(404, 503) },
    }),
    orAlertsUnavailable(async ({ params: { name }, body }, reply) => {
      const endpoint = ports.policy.state?.policy.endpoints.get(name)
      if (endpoint === undefined) return answerProblem(reply, unknownName('endpoint', name))
      const subject = body?.subject
      const isOfSubjects = endpoint.type === 'subject'
      if (isOfSubjects !== (subject !== undefined)) {
        const what = isOfSubjects ? 'is sent to the contact of a subject: name it in `subject`' : 'takes no `subject`'
        return answerProblem(reply, badRequest(`a test of ${name}, an endpoint of type ${endpoint.type}, ${what}`))
      }
      if (subject !== undefined && targetsNamed(ports, endpoint, subject).length === 0) {
        return answerProblem(reply, badRequest(`the subject ${subject} has no contact that gets mail or a webhook`))
      }
      return reply.code(202).send({ id: await ports.alerts.sendTest(name, subject) })
    }),
  )
}
