import type { DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import { formatTs } from '@weir/contracts/timestamp.ts'
import { WeirError } from '@weir/core/errors.ts'
import { problemType } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { answerProblem, badRequest, unknownName } from '../http/problems.ts'
import {
  answer,
  anyObject,
  object,
  type PageQuery,
  page,
  pageQuery,
  problems,
  text,
  textOrNull,
} from '../http/schemas.ts'
import type { Ports } from '../ports.ts'

const dayMs = 86_400_000
/** Without `from`, so far back. */
const lookBackMs = 7 * dayMs
/** Of one bulk request; who has more repeats it. */
const redeliveredMax = 10_000

const timeParameter = (what: string) => ({ type: 'string', format: 'date-time', description: what })
const filterQuery = {
  from: timeParameter('first instant; a week ago without it'),
  to: timeParameter('instant after the last; now without it'),
  subject: text('whose'),
  type: text('such as `weir.quota.reached`'),
} as const

interface FilterQuery {
  readonly from?: string
  readonly to?: string
  readonly subject?: string
  readonly type?: string
  readonly endpoint?: string
}

const alertProperties = {
  id: text('as subscribers and receivers get it'),
  type: text('`ce_type`'),
  subject: text('whom it is about'),
  time: text('when it was raised'),
  state: text('`raised`, or `late`: its period was over, and nobody was told'),
  data: { ...anyObject, description: 'what it says' },
}

const delivery = object({
  endpoint: text('its name in the policy'),
  attempt: { type: 'integer', description: '0: nothing sent yet' },
  at: text('when'),
  outcome: text('queued, requested, delivered, failed, given_up, dropped'),
  status: { type: 'integer', description: 'of the answer; 0: none' },
  ms: { type: 'integer' },
  error: text('why it failed'),
  next_try: textOrNull('when it is tried again'),
  answer: text('the beginning of the answer’s body; empty for endpoints with allowPrivate'),
})

const accepted = object({ requested: { type: 'integer', description: 'deliveries that begin anew' } })

function filterOf({ from, to, ...rest }: FilterQuery, nowMs: number) {
  const toMs = to === undefined ? nowMs + 1 : Date.parse(to)
  return { ...rest, fromMs: from === undefined ? toMs - lookBackMs : Date.parse(from), toMs }
}

/** `after` is the time and the id of the last alert of the page before. */
function parseAfter(after: string | undefined): { timeMs: number; id: string } | undefined {
  const [time = '', id = ''] = after?.split(' ') ?? []
  const timeMs = Date.parse(time)
  return Number.isNaN(timeMs) ? undefined : { timeMs, id }
}

const unavailable = {
  type: problemType('alerts-unavailable'),
  title: 'Unavailable',
  status: 503,
  detail: 'ClickHouse or Kafka did not answer. Ask again; it is safe to repeat.',
}

/** Asks a server; when it does not answer the caller is told to come back, and the log why. */
async function orUnavailable<T>(reply: FastifyReply, ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask()
  } catch (error) {
    reply.log.error({ err: error }, 'alerts unavailable')
    const isDenied = error instanceof WeirError && error.code === 'KAFKA_DENIED'
    answerProblem(reply, isDenied ? { ...unavailable, detail: error.message } : unavailable)
    return undefined
  }
}

function requestedRow(
  of: Pick<DeliveryV1, 'alert_id' | 'alert_type' | 'subject' | 'endpoint'>,
  nowMs: number,
): DeliveryV1 {
  const at = formatTs(nowMs)
  const { alert_id, alert_type, subject, endpoint } = of
  return {
    ...{ alert_id, alert_type, subject, endpoint, attempt: 0, at, outcome: 'requested' },
    ...{ status: 0, ms: 0, error: '', next_try: at, answer: '' },
  }
}

function registerReading(app: FastifyInstance, { alerts, clock }: Ports): void {
  app.get<{ Querystring: FilterQuery & PageQuery }>(
    '/v1/alerts',
    {
      config: { scope: 'read' },
      schema: {
        tags: ['alerts'],
        summary: 'Alerts, newest first, with the last outcome at each endpoint',
        querystring: { type: 'object', additionalProperties: false, properties: { ...filterQuery, ...pageQuery } },
        response: {
          200: answer(
            'A page',
            page(
              object({ ...alertProperties, deliveries: { type: 'object', additionalProperties: { type: 'string' } } }),
            ),
          ),
          ...problems(503),
        },
      },
    },
    async ({ query }, reply) => {
      const { after, limit, ...filter } = query
      const found = await orUnavailable(reply, () =>
        alerts.list(filterOf(filter, clock.nowMs()), { limit: limit + 1, after: parseAfter(after) }),
      )
      if (found === undefined) return reply
      const items = found.slice(0, limit).map(({ data, deliveries, ...alert }) => ({
        ...alert,
        data: JSON.parse(data),
        deliveries: Object.fromEntries(deliveries),
      }))
      const last = items.at(-1)
      return { items, next: found.length > limit && last !== undefined ? `${last.time} ${last.id}` : null }
    },
  )

  app.get<{ Params: { readonly id: string } }>(
    '/v1/alerts/:id',
    {
      config: { scope: 'read' },
      schema: {
        tags: ['alerts'],
        summary: 'One alert, with every step of its deliveries',
        params: object({ id: { type: 'string', format: 'uuid' } }),
        response: {
          200: answer('The alert', object({ ...alertProperties, deliveries: { type: 'array', items: delivery } })),
          ...problems(404, 503),
        },
      },
    },
    async ({ params: { id } }, reply) => {
      const found = await orUnavailable(reply, async () => ({ one: await alerts.find(id) }))
      if (found === undefined) return reply
      if (found.one === undefined) return answerProblem(reply, unknownName('alert', id, ''))
      const { alert, deliveries } = found.one
      return { ...alert, data: JSON.parse(alert.data), deliveries }
    },
  )
}

const endpointsOf = ({ policy }: Ports): readonly string[] => [...(policy.state?.policy.endpoints.keys() ?? [])]

function registerRedelivery(app: FastifyInstance, ports: Ports): void {
  const { alerts, clock } = ports
  app.post<{ Params: { readonly id: string }; Body: { readonly endpoint?: string } | null }>(
    '/v1/alerts/:id/redeliver',
    {
      config: { scope: 'write' },
      schema: {
        tags: ['alerts'],
        summary: 'Deliver an alert once more, under the same id',
        params: object({ id: { type: 'string', format: 'uuid' } }),
        body: {
          type: ['object', 'null'],
          additionalProperties: false,
          properties: { endpoint: text('only there; without it wherever it went, or was to go') },
        },
        response: { 202: answer('It is queued', accepted), ...problems(404, 503) },
      },
    },
    async ({ params: { id }, body }, reply) => {
      const found = await orUnavailable(reply, async () => ({ one: await alerts.find(id) }))
      if (found === undefined) return reply
      if (found.one === undefined) return answerProblem(reply, unknownName('alert', id, ''))
      const { alert, deliveries } = found.one
      const known = endpointsOf(ports)
      const wanted = body?.endpoint
      if (wanted !== undefined && !known.includes(wanted))
        return answerProblem(reply, unknownName('endpoint', wanted, ''))
      const past = [...new Set(deliveries.map(({ endpoint }) => endpoint))].filter((name) => known.includes(name))
      const endpoints = wanted === undefined ? past : [wanted]
      const rows = endpoints.map((endpoint) =>
        requestedRow({ alert_id: alert.id, alert_type: alert.type, subject: alert.subject, endpoint }, clock.nowMs()),
      )
      const requested = await orUnavailable(reply, () => alerts.request(rows))
      return requested === undefined ? reply : reply.code(202).send({ requested })
    },
  )
}

function registerBulkRedelivery(app: FastifyInstance, ports: Ports): void {
  const { alerts, clock } = ports
  app.post<{ Body: FilterQuery }>(
    '/v1/deliveries/redeliver',
    {
      config: { scope: 'write' },
      schema: {
        tags: ['alerts'],
        summary: `Deliver once more what was given up or dropped, ${redeliveredMax.toLocaleString('en')} at a time`,
        body: {
          type: 'object',
          additionalProperties: false,
          required: ['from'],
          properties: { ...filterQuery, endpoint: text('only there') },
        },
        response: { 202: answer('They are queued', accepted), ...problems(503) },
      },
    },
    async ({ body }, reply) => {
      const filter = filterOf(body, clock.nowMs())
      if (filter.fromMs >= filter.toMs) return answerProblem(reply, badRequest('from is not before to'))
      const found = await orUnavailable(reply, () => alerts.listFailed(filter, redeliveredMax))
      if (found === undefined) return reply
      const known = endpointsOf(ports)
      const nowMs = clock.nowMs()
      const rows = found.filter(({ endpoint }) => known.includes(endpoint)).map((one) => requestedRow(one, nowMs))
      const requested = await orUnavailable(reply, () => alerts.request(rows))
      return requested === undefined ? reply : reply.code(202).send({ requested })
    },
  )
}

function registerTest(app: FastifyInstance, ports: Ports): void {
  const { alerts } = ports
  app.post<{ Params: { readonly name: string } }>(
    '/v1/endpoints/:name/test',
    {
      config: { scope: 'write' },
      schema: {
        tags: ['alerts'],
        summary: 'Send an endpoint a test; one that was disabled and takes it is enabled',
        params: object({ name: text('in the policy') }),
        response: {
          202: answer('It is on its way', object({ id: text('of the alert, which tells how it went') })),
          ...problems(404, 503),
        },
      },
    },
    async ({ params: { name } }, reply) => {
      if (!endpointsOf(ports).includes(name)) return answerProblem(reply, unknownName('endpoint', name, ''))
      const sent = await orUnavailable(reply, () => alerts.sendTest(name))
      return sent === undefined ? reply : reply.code(202).send({ id: sent })
    },
  )
}

/** `/v1/alerts`, `/v1/deliveries/redeliver` and `/v1/endpoints/{name}/test`. */
export function registerAlerts(app: FastifyInstance, ports: Ports): void {
  registerReading(app, ports)
  registerRedelivery(app, ports)
  registerBulkRedelivery(app, ports)
  registerTest(app, ports)
}
