import { hash } from 'node:crypto'
import type { ChangeLineV1 } from '@weir/contracts/policy.v1.ts'
import {
  canonicalJson,
  deleteEntity,
  type Entity,
  type EntityChange,
  type EntityKind,
  type EntityOrigin,
  entityOrigins,
  type JsonObject,
  putEntity,
} from '@weir/policy/entities.ts'
import { nameSchema, partSchema } from '@weir/policy/reader/part-schema.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { didYouMean } from '@weir/policy/suggest.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { missingChangeScope } from '../http/authorize.ts'
import { answerProblem, changeRejected, policyUnread, preconditionFailed, unknownName } from '../http/problems.ts'
import {
  answer,
  anyObject,
  deleted,
  object,
  operation,
  origin,
  type PageQuery,
  page,
  pageOf,
  pageQuery,
  problems,
  text,
} from '../http/schemas.ts'
import type { Ports } from '../ports.ts'
import { answerChange, changing } from './answer-change.ts'
import { type ChangePlan, type PolicyChanger, reject } from './change-policy.ts'

/** Parts of the policy that are changed one by one; all but `identity` have a name. */
export const sections: Readonly<Record<string, EntityKind>> = {
  plans: 'plan',
  prices: 'price',
  limits: 'limit',
  routes: 'route',
  refusals: 'refusal',
  upstreams: 'upstream',
  endpoints: 'endpoint',
  watches: 'watch',
  unsubscribed: 'unsubscribed',
  subjects: 'subject',
  identity: 'identity',
}

/** The names there are, for a suggestion. */
function* namesOf(state: PolicyState, kind: EntityKind): Iterable<string> {
  for (const { name } of state.list(kind)) yield name
}

/** Returns the problem that no entity has this name, with the name that was probably meant. */
export const noEntity = (state: PolicyState, kind: EntityKind, name: string) =>
  kind === 'identity'
    ? { ...unknownName(kind, name), detail: 'The policy says nothing about identity: the defaults are in force.' }
    : unknownName(kind, name, didYouMean(name, namesOf(state, kind)))

/** Weir.yaml repeats a route's name in it, and a subject's keys; the entity has neither. */
function bodyOf(kind: EntityKind, name: string, sent: JsonObject): JsonObject | string {
  if (kind === 'subject' && 'keys' in sent) return `keys are made by POST /v1/subjects/${encodeURIComponent(name)}/keys`
  if (kind !== 'route' || !('match' in sent)) return sent
  const { match, ...body } = sent
  return match === name ? body : `match must be the name of the route, ${JSON.stringify(name)}, or left out`
}

/** Digits of the hash: no two versions of an entity meet by chance. */
const digits = 32

/** Returns the ETag of an entity: equal for equal bodies, also of different callers. */
const entityTag = ({ body }: Entity): string => `"${hash('sha256', canonicalJson(body), 'hex').slice(0, digits)}"`

const lists = (header: string, tag: string | undefined) =>
  tag !== undefined &&
  (header.trim() === '*' || header.split(',').some((one) => one.trim().replace(/^W\//, '') === tag))

/** Says which condition of a request does not hold; undefined if all do. */
function brokenCondition(entity: Entity | undefined, { headers }: FastifyRequest): string | undefined {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  const tag = entity === undefined ? undefined : entityTag(entity)
  if (ifMatch !== undefined && !lists(ifMatch, tag)) {
    return tag === undefined ? 'It is not there any more.' : `Somebody has changed it: its ETag is ${tag} by now.`
  }
  return ifNoneMatch !== undefined && lists(ifNoneMatch, tag) ? `It is there, with the ETag ${tag}.` : undefined
}

interface Named {
  /** Without a name there is only one of the kind, and the kind is its name. */
  readonly Params: { readonly name?: string }
}

interface Put extends Named {
  readonly Body: JsonObject
  readonly Headers: { readonly 'weir-origin'?: EntityOrigin }
}

function planPut(state: PolicyState, kind: EntityKind, name: string, request: FastifyRequest<Put>) {
  const before = state.get(kind, name)
  const broken = brokenCondition(before, request)
  if (broken !== undefined) return reject(preconditionFailed(broken))
  const body = bodyOf(kind, name, request.body)
  if (typeof body === 'string') return reject(changeRejected([{ path: `${kind} ${name}`, message: body }]))
  const origin = request.headers['weir-origin'] ?? 'admin'
  const entity: Entity = { kind, name, origin, position: before?.position, body }
  const put = { entity, isNew: before === undefined }
  if (before !== undefined && entityTag(before) === entityTag(entity)) return { kind: 'nothing', answer: put } as const
  const changes = [putEntity(entity)]
  const missing = missingChangeScope(request, state, changes)
  if (missing !== undefined) return reject(missing)
  const lines: ChangeLineV1[] = [{ what: 'put', kind, name }]
  return { kind: 'change', changes, lines, answer: put } as const
}

/**
 * A subject takes its keys along, which takes the scope for them: a revoked one would no longer be known as revoked.
 */
function planDelete(
  state: PolicyState,
  kind: EntityKind,
  name: string,
  request: FastifyRequest,
): ChangePlan<undefined> {
  const before = state.get(kind, name)
  if (before === undefined) return reject(noEntity(state, kind, name))
  const broken = brokenCondition(before, request)
  if (broken !== undefined) return reject(preconditionFailed(broken))
  const keys = kind === 'subject' ? state.keysOf(name) : []
  const changes: EntityChange[] = [...keys.map((key) => deleteEntity('key', key)), deleteEntity(kind, name)]
  const missing = missingChangeScope(request, state, changes)
  if (missing !== undefined) return reject(missing)
  return { kind: 'change', changes, lines: [{ what: 'delete', kind, name }], answer: undefined }
}

/** One section of the policy, as its routes are made. */
interface Section {
  readonly app: FastifyInstance
  readonly ports: Ports
  readonly changer: PolicyChanger
  readonly path: string
  readonly kind: EntityKind
}

const nameOf = ({ kind }: Section, { params: { name } }: { readonly params: Named['Params'] }) => name ?? kind
const nameText = 'as in weir.yaml; of a route its `match`, such as `GET /v1/users`'
const named = object({ name: text(nameText) })

/** Returns the URL of one part of the section, and the words of its description. */
function onePart({ path, kind }: Section) {
  if (kind === 'identity') return { url: `/v1/${path}`, what: path, params: {}, scope: 'admin' } as const
  const params = { params: named }
  return { url: `/v1/${path}/:name`, what: `one of the ${path}`, params, scope: 'write' } as const
}
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
/** A name that breaks these rules is as unknown as any, and cannot be made. */
const describedName = ({ path, kind }: Section) =>
  kind === 'identity' ? {} : { params: object({ name: { ...nameSchema(path), description: nameText } }) }
const item = object({ name: text('its name'), origin, etag: text('for If-Match'), body: anyObject })

const show = (reply: FastifyReply, entity: Entity) =>
  reply.header('etag', entityTag(entity)).header('weir-origin', entity.origin).send(entity.body)

function registerReading(section: Section): void {
  const { app, ports, path, kind } = section
  const { url, what, params } = onePart(section)
  if (kind !== 'identity') {
    const list = operation('read', path, `All ${path}, by name`, {
      query: pageQuery,
      response: { 200: answer('A page', page(item)), ...problems(503) },
    })
    app.get<{ Querystring: PageQuery }>(`/v1/${path}`, list, async ({ query: { after = '', limit } }, reply) => {
      const { state } = ports.policy
      if (state === undefined) return answerProblem(reply, policyUnread)
      const shown = state.page(kind, after, limit + 1).map((entity) => {
        const { name, origin, body } = entity
        return { name, origin, etag: entityTag(entity), body }
      })
      return pageOf(shown, limit, ({ name }) => name)
    })
  }

  const one = operation('read', path, `Read ${what}, as in weir.yaml`, {
    ...params,
    response: { 200: answer('As in weir.yaml', anyObject), ...problems(404, 503) },
  })
  app.get<Named>(url, one, async (request, reply) => {
    const { state } = ports.policy
    if (state === undefined) return answerProblem(reply, policyUnread)
    const name = nameOf(section, request)
    const entity = state.get(kind, name)
    return entity === undefined ? answerProblem(reply, noEntity(state, kind, name)) : show(reply, entity)
  })
}

function registerChanging(section: Section): void {
  const { app, changer, path, kind } = section
  const { url, what, params, scope } = onePart(section)
  const put = operation(scope, path, `Create or replace ${what}`, {
    ...params,
    headers,
    body: anyObject,
    described: { ...describedName(section), body: partSchema(path) },
    response: {
      200: answer('Replaced, or so already', anyObject),
      201: answer('Created', anyObject),
      ...problems(409, 412, 422, 503),
    },
  })
  app.put<Put>(url, put, async (request, reply) => {
    const plan = (state: PolicyState) => planPut(state, kind, nameOf(section, request), request)
    const changed = await changer.change(request.by, plan)
    return answerChange(reply, changed, ({ entity, isNew }) => show(reply.code(isNew ? 201 : 200), entity))
  })

  const remove = operation(scope, path, `Delete ${what}`, {
    ...params,
    headers,
    response: { 204: deleted('Deleted'), ...problems(404, 409, 412, 422, 503) },
  })
  app.delete<Named>(
    url,
    remove,
    changing(changer, 204, (state, request) => planDelete(state, kind, nameOf(section, request), request)),
  )
}

/** `GET|PUT|DELETE /v1/SECTION[/{name}]` for each section with names, and `/v1/identity`. */
export function registerEntities(app: FastifyInstance, ports: Ports, changer: PolicyChanger): void {
  for (const [path, kind] of Object.entries(sections)) {
    const section = { app, ports, changer, path, kind }
    registerReading(section)
    registerChanging(section)
  }
}
