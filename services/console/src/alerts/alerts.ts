import {
  getAlert,
  getEndpointSecret,
  listAlerts,
  redeliverAlert,
  redeliveredMax,
  redeliverFailed,
  testEndpoint,
} from '@weir/api/alerts.ts'
import type { BodyOf } from '@weir/api/operation.ts'
import { readSpan } from '@weir/api/query/read-parameters.ts'
import { type DeliveryV1, deliveryAttemptsMax } from '@weir/contracts/delivery.v1.ts'
import { formatTs } from '@weir/contracts/timestamp.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { endpointNameOf, targetsOf } from '@weir/policy/contact-targets.ts'
import { endpointSecrets } from '@weir/policy/endpoint-secret.ts'
import type { JsonObject } from '@weir/policy/entities.ts'
import type { Endpoint } from '@weir/policy/policy.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import { signingKeysOf } from '@weir/runtime/signing-keys.ts'
import type { FastifyInstance } from 'fastify'
import { subjectForbidden } from '../http/authorize.ts'
import { cursorInvalid } from '../http/cursor.ts'
import { pageOf } from '../http/page.ts'
import { alertsUnavailable, answerProblem, secretUnavailable, unknown, unknownName } from '../http/problems.ts'
import { serveQuestion } from '../http/question-failure.ts'
import type { Sources } from '../sources.ts'
import type { FailedDelivery, StoredAlert } from './delivery-queries.ts'
import { hiddenLimitsOf, ownData, summaryOf } from './own-alerts.ts'

const dayMs = 86_400_000
/** Without `from`, so far back. */
const lookBackMs = 7 * dayMs
type FilterQuery = Partial<BodyOf<typeof redeliverFailed>>

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

const noAnswer = 'ClickHouse or Kafka did not respond. Try again; repeating the request is safe.'

const unanswered = {
  what: 'alerts unavailable',
  problem: (error: unknown) =>
    alertsUnavailable(error instanceof WeirError && error.code === 'KAFKA_DENIED' ? error.message : noAnswer),
}

function requestedRow({ alert_id, alert_type, subject, endpoint }: FailedDelivery, nowMs: number): DeliveryV1 {
  const at = formatTs(nowMs)
  const nothingSent = { attempt: 0, outcome: 'requested', status: 0, ms: 0, error: '', answer: '' } as const
  return { alert_id, alert_type, subject, endpoint, at, next_try: at, ...nothingSent }
}

/** Deliveries name the operator's endpoints and what they answered: who is limited to subjects gets none of them. */
function registerReading(app: FastifyInstance, { alerts, clock, policy }: Sources): void {
  const within = (reach: Reach) => ({
    reach,
    hiddenLimits: reach.isOwn ? hiddenLimitsOf(policy.state?.policy, reach) : [],
  })
  const shown = ({ isOwn }: Reach, { data: text, ...alert }: StoredAlert) => {
    const whole: JsonObject = JSON.parse(text)
    const data = isOwn ? ownData(policy.state?.policy, whole) : whole
    return { ...alert, data, summary: summaryOf(alert, whole, data) }
  }
  serveQuestion(app, listAlerts, unanswered, async (request, reply) => {
    const { after, limit, ...filter } = request.query
    const { reach } = request
    const asksOfDeliveries = reach.isOwn && (filter.outcome ?? filter.endpoint) !== undefined
    if (asksOfDeliveries || (filter.subject !== undefined && !reach.covers([filter.subject]))) {
      return answerProblem(reply, subjectForbidden(request))
    }
    const wanted = readFilter(filter, clock.nowMs())
    if (typeof wanted === 'string') return answerProblem(reply, badRequest(wanted))
    const position = after === undefined ? undefined : parseAfter(after)
    if (after !== undefined && position === undefined) return answerProblem(reply, cursorInvalid)
    const found = (await alerts.list(within(reach), wanted, { limit: limit + 1, after: position })).map(
      ({ deliveries: last, ...alert }) => ({
        ...shown(reach, alert),
        deliveries: reach.isOwn ? {} : Object.fromEntries(last),
      }),
    )
    return pageOf(found, limit, ({ time, id }) => `${time} ${id}`)
  })

  serveQuestion(app, getAlert, unanswered, async ({ params: { id }, reach }, reply) => {
    const found = await alerts.find(within(reach), id)
    if (found === undefined) return answerProblem(reply, unknownName('alert', id))
    const deliveries = reach.isOwn ? [] : found.deliveries
    return { ...shown(reach, found.alert), attempts_max: deliveryAttemptsMax, deliveries }
  })
}

const endpointOf = ({ policy }: Sources, name: string) => policy.state?.policy.endpoints.get(endpointNameOf(name))

/** Returns the targets of an endpoint for a subject: of one of type `subject` the addresses of its contact. */
function targetsNamed(sources: Sources, endpoint: Endpoint, subject: string): readonly string[] {
  if (endpoint.type !== 'subject') return [endpoint.name]
  const policy = sources.policy.state?.policy
  return policy === undefined ? [] : targetsOf(endpoint, policy, subject).map(({ name }) => name)
}

function registerRedelivery(app: FastifyInstance, sources: Sources): void {
  const { alerts, clock } = sources
  serveQuestion(app, redeliverAlert, unanswered, async ({ params: { id }, body, reach }, reply) => {
    const found = await alerts.find({ reach, hiddenLimits: [] }, id)
    if (found === undefined) return answerProblem(reply, unknownName('alert', id))
    const { type, subject } = found.alert
    const wanted = body?.endpoint
    const only = wanted === undefined ? undefined : endpointOf(sources, wanted)
    if (wanted !== undefined && only === undefined) return answerProblem(reply, noEndpoint(sources, wanted))
    const past = new Set(found.deliveries.map(({ endpoint }) => endpoint))
    const targets =
      only === undefined
        ? [...past].filter((name) => endpointOf(sources, name) !== undefined)
        : targetsNamed(sources, only, subject).filter((name) => wanted === only.name || wanted === name)
    const rows = targets.map((endpoint) =>
      requestedRow({ alert_id: found.alert.id, alert_type: type, subject, endpoint }, clock.nowMs()),
    )
    return reply.code(202).send({ requested: await alerts.request(rows) })
  })

  serveQuestion(app, redeliverFailed, unanswered, async ({ body }, reply) => {
    const filter = readFilter(body, clock.nowMs())
    if (typeof filter === 'string') return answerProblem(reply, badRequest(filter))
    const found = await alerts.listFailed(filter, redeliveredMax)
    const nowMs = clock.nowMs()
    const known = found.filter(({ endpoint }) => endpointOf(sources, endpoint) !== undefined)
    const rows = known.map((one) => requestedRow(one, nowMs))
    return reply.code(202).send({ requested: await alerts.request(rows) })
  })
}

/** The policy has no endpoint of this name; the detail suggests the nearest. */
const noEndpoint = ({ policy }: Sources, name: string) =>
  unknownName('endpoint', name, policy.state?.policy.endpoints.keys())

/** `/v1/alerts`, `/v1/deliveries/redeliver`, and `/v1/endpoints/{name}/test` and `/secret`. */
export function registerAlerts(app: FastifyInstance, sources: Sources): void {
  registerReading(app, sources)
  registerRedelivery(app, sources)
  serveQuestion(app, getEndpointSecret, unanswered, async ({ params: { name } }, reply) => {
    const endpoint = sources.policy.state?.policy.endpoints.get(name)
    if (endpoint === undefined) return answerProblem(reply, noEndpoint(sources, name))
    if (endpoint.type !== 'webhook' || endpoint.secretEnv !== undefined) {
      return answerProblem(
        reply,
        unknown(`Weir makes no secret for ${name}: it makes secrets only for webhooks without secretEnv.`),
      )
    }
    const [secret] = endpointSecrets(signingKeysOf(sources.access.unsubscribeKey()), name)
    if (secret === undefined) return answerProblem(reply, secretUnavailable)
    reply.header('cache-control', 'no-store')
    return { secret }
  })
  serveQuestion(app, testEndpoint, unanswered, async ({ params: { name }, body }, reply) => {
    const endpoint = sources.policy.state?.policy.endpoints.get(name)
    if (endpoint === undefined) return answerProblem(reply, noEndpoint(sources, name))
    const subject = body?.subject
    const isOfSubjects = endpoint.type === 'subject'
    if (isOfSubjects !== (subject !== undefined)) {
      const what = isOfSubjects ? 'is sent to the contact for a subject: set `subject`' : 'must omit `subject`'
      return answerProblem(reply, badRequest(`a test of ${name}, an endpoint of type ${endpoint.type}, ${what}`))
    }
    if (subject !== undefined && targetsNamed(sources, endpoint, subject).length === 0) {
      return answerProblem(
        reply,
        badRequest(`the subject ${subject} has no contact with an email address or a webhook`),
      )
    }
    return reply.code(202).send({ id: await sources.alerts.sendTest(name, subject) })
  })
}
