import type { ChangeLineV1 } from '@weir/contracts/policy.v1.ts'
import {
  deleteEntity,
  type Entity,
  type EntityChange,
  type EntityKind,
  type EntityOrigin,
  entityOrigins,
  type JsonObject,
  putEntity,
} from '@weir/core/policy/entities.ts'
import type { PolicyState } from '@weir/core/policy/policy-state.ts'
import { didYouMean } from '@weir/core/policy/suggest.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Plan, PolicyChanger } from '../change-policy.ts'
import { brokenCondition, type Conditions, entityTag } from '../entity-tag.ts'
import { answerChange } from '../http/answer-change.ts'
import { missingChangeScope } from '../http/change-scopes.ts'
import { answerProblem, changeRefused, policyUnavailable, preconditionFailed, unknownName } from '../http/problems.ts'
import { answer, anyObject, object, origin, type PageQuery, page, pageQuery, problems, text } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'

/** Parts of the policy that have a name and are changed one by one. */
const collections: Readonly<Record<string, EntityKind>> = {
  plans: 'plan',
  limits: 'limit',
  routes: 'route',
  upstreams: 'upstream',
  endpoints: 'endpoint',
  watches: 'watch',
  subjects: 'subject',
}

const unread = policyUnavailable('The policy was not read yet: Kafka does not answer.')

/** The names there are, for a suggestion. */
function* namesOf(state: PolicyState, kind: EntityKind): Iterable<string> {
  for (const { name } of state.list(kind)) yield name
}

/** Says that there is none of this name, and which was probably meant. */
export const noEntity = (state: PolicyState, kind: EntityKind, name: string) =>
  unknownName(kind, name, didYouMean(name, namesOf(state, kind)))

/** Weir.yaml repeats a route's name in it, and a subject's keys; the entity has neither. */
function bodyOf(kind: EntityKind, name: string, sent: JsonObject): JsonObject | string {
  if (kind === 'subject' && 'keys' in sent) return `keys are made by POST /v1/subjects/${encodeURIComponent(name)}/keys`
  if (kind !== 'route' || !('match' in sent)) return sent
  const { match, ...body } = sent
  return match === name ? body : `match must be the name of the route, ${JSON.stringify(name)}, or left out`
}

interface Put extends Conditions {
  readonly origin: EntityOrigin
  readonly request: FastifyRequest
}

function planPut(state: PolicyState, kind: EntityKind, name: string, sent: JsonObject, how: Put) {
  const before = state.get(kind, name)
  const broken = brokenCondition(before, how)
  if (broken !== undefined) return { kind: 'problem', problem: preconditionFailed(broken) } as const
  const body = bodyOf(kind, name, sent)
  if (typeof body === 'string') {
    const problem = changeRefused([{ path: `${kind} ${name}`, message: body }])
    return { kind: 'problem', problem } as const
  }
  const entity: Entity = { kind, name, origin: how.origin, position: before?.position, body }
  const put = { entity, isNew: before === undefined }
  if (before !== undefined && entityTag(before) === entityTag(entity)) return { kind: 'nothing', answer: put } as const
  const changes = [putEntity(entity)]
  const missing = missingChangeScope(how.request, state, changes)
  if (missing !== undefined) return { kind: 'problem', problem: missing } as const
  const lines: ChangeLineV1[] = [{ what: 'put', kind, name }]
  return { kind: 'change', changes, lines, answer: put } as const
}

/** A subject takes its keys along. */
function planDelete(state: PolicyState, kind: EntityKind, name: string, conditions: Conditions): Plan<undefined> {
  const before = state.get(kind, name)
  if (before === undefined) return { kind: 'problem', problem: noEntity(state, kind, name) }
  const broken = brokenCondition(before, conditions)
  if (broken !== undefined) return { kind: 'problem', problem: preconditionFailed(broken) }
  const keys = kind === 'subject' ? state.keysOf(name) : []
  const changes: EntityChange[] = [...keys.map((key) => deleteEntity('key', key)), deleteEntity(kind, name)]
  return { kind: 'change', changes, lines: [{ what: 'delete', kind, name }], answer: undefined }
}

const conditionsOf = ({ headers }: FastifyRequest): Conditions => ({
  ifMatch: headers['if-match'],
  ifNoneMatch: headers['if-none-match'],
})

interface Named {
  readonly Params: { readonly name: string }
}

/** One collection, as its routes are made. */
interface Collection {
  readonly app: FastifyInstance
  readonly ports: Ports
  readonly changer: PolicyChanger
  readonly path: string
  readonly kind: EntityKind
}

const params = object({ name: text('as in weir.yaml; of a route its `match`, such as `GET /v1/users`') })
const headers = {
  type: 'object',
  properties: {
    'if-match': text('only if the ETag is still this'),
    'if-none-match': text('`*`: only if there is none'),
    'weir-origin': {
      type: 'string',
      enum: entityOrigins,
      description:
        '`file`: it counts as part of the file applied last, and goes with the next one that does not have it',
    },
  },
}
const item = object({ name: text('its name'), origin, etag: text('for If-Match'), body: anyObject })

const show = (reply: FastifyReply, entity: Entity) =>
  reply.header('etag', entityTag(entity)).header('weir-origin', entity.origin).send(entity.body)

function registerList({ app, ports, path, kind }: Collection): void {
  const schema = {
    tags: [path],
    summary: `All ${path}, by name`,
    querystring: { type: 'object', additionalProperties: false, properties: pageQuery },
    response: { 200: answer('A page', page(item)), ...problems(503) },
  }
  app.get<{ Querystring: PageQuery }>(`/v1/${path}`, { config: { scope: 'read' }, schema }, async (request, reply) => {
    const { state } = ports.policy
    if (state === undefined) return answerProblem(reply, unread)
    const { after = '', limit } = request.query
    const found = state.page(kind, after, limit + 1)
    const items = found.slice(0, limit).map((entity) => {
      const { name, origin, body } = entity
      return { name, origin, etag: entityTag(entity), body }
    })
    return { items, next: found.length > limit ? (items.at(-1)?.name ?? null) : null }
  })
}

function registerRead({ app, ports, path, kind }: Collection): void {
  const schema = {
    tags: [path],
    summary: `One of the ${path}, as in weir.yaml`,
    params,
    response: { 200: answer('As in weir.yaml', anyObject), ...problems(404, 503) },
  }
  app.get<Named>(`/v1/${path}/:name`, { config: { scope: 'read' }, schema }, async ({ params: { name } }, reply) => {
    const { state } = ports.policy
    if (state === undefined) return answerProblem(reply, unread)
    const entity = state.get(kind, name)
    return entity === undefined ? answerProblem(reply, noEntity(state, kind, name)) : show(reply, entity)
  })
}

function registerPut({ app, changer, path, kind }: Collection): void {
  const schema = {
    tags: [path],
    summary: `Create or replace one of the ${path}`,
    params,
    headers,
    body: anyObject,
    response: {
      200: answer('Replaced, or so already', anyObject),
      201: answer('Created', anyObject),
      ...problems(409, 412, 422, 503),
    },
  }
  const options = { config: { scope: 'write' }, schema } as const
  app.put<Named & { Body: JsonObject; Headers: { readonly 'weir-origin'?: EntityOrigin } }>(
    `/v1/${path}/:name`,
    options,
    async (request, reply) => {
      const { by, body, params } = request
      const how = { ...conditionsOf(request), origin: request.headers['weir-origin'] ?? 'admin', request }
      const changed = await changer.change(by, (state) => planPut(state, kind, params.name, body, how))
      return answerChange(reply, changed, ({ entity, isNew }) => show(reply.code(isNew ? 201 : 200), entity))
    },
  )
}

function registerDelete({ app, changer, path, kind }: Collection): void {
  const schema = {
    tags: [path],
    summary: `Delete one of the ${path}`,
    params,
    headers,
    response: { 204: { description: 'Deleted', type: 'null' }, ...problems(404, 409, 412, 422, 503) },
  }
  app.delete<Named>(`/v1/${path}/:name`, { config: { scope: 'write' }, schema }, async (request, reply) => {
    const { by, params } = request
    const changed = await changer.change(by, (state) => planDelete(state, kind, params.name, conditionsOf(request)))
    return answerChange(reply, changed, () => reply.code(204).send())
  })
}

/** `GET|PUT|DELETE /v1/{plans,limits,routes,upstreams,endpoints,watches,subjects}[/{name}]`. */
export function registerEntities(app: FastifyInstance, ports: Ports, changer: PolicyChanger): void {
  for (const [path, kind] of Object.entries(collections)) {
    const collection = { app, ports, changer, path, kind }
    registerList(collection)
    registerRead(collection)
    registerPut(collection)
    registerDelete(collection)
  }
}
