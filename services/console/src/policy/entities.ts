import { hash } from 'node:crypto'
import { sectionOperations, sections } from '@weir/api/policy.ts'
import type { ChangeLineV1 } from '@weir/contracts/policy.v1.ts'
import {
  canonicalJson,
  deleteEntity,
  type Entity,
  type EntityChange,
  type EntityKind,
  type EntityOrigin,
  type JsonObject,
  putEntity,
} from '@weir/policy/entities.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { type ChangePlan, type PolicyChanger, reject } from '@weir/policy-changes/change-policy.ts'
import { changeRejected } from '@weir/policy-changes/change-problems.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { missingChangeScope } from '../http/authorize.ts'
import { pageOfEntities } from '../http/page.ts'
import { answerProblem, preconditionFailed, unknownName } from '../http/problems.ts'
import { type RequestOf, serve, servePolicy } from '../http/serve.ts'
import type { Sources } from '../sources.ts'
import { answerChange, serveChange } from './answer-change.ts'

/** The names there are, for a suggestion. */
function* namesOf(state: PolicyState, kind: EntityKind): Iterable<string> {
  for (const { name } of state.list(kind)) yield name
}

/** Returns the problem that no entity has this name, with the name that was probably meant. */
export const noEntity = (state: PolicyState, kind: EntityKind, name: string) =>
  kind === 'identity'
    ? { ...unknownName(kind, name), detail: 'The policy does not set `identity`, so the defaults apply.' }
    : unknownName(kind, name, namesOf(state, kind))

/** Weir.yaml repeats a route's name in it, and a subject's keys; the entity has neither. */
function bodyOf(kind: EntityKind, name: string, sent: JsonObject): JsonObject | string {
  if (kind === 'subject' && 'keys' in sent) return `create keys with POST /v1/subjects/${encodeURIComponent(name)}/keys`
  if (kind !== 'route' || !('match' in sent)) return sent
  const { match, ...body } = sent
  return match === name ? body : `match must be the name of the route, ${JSON.stringify(name)}, or be omitted`
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
    return tag === undefined ? 'It no longer exists.' : `It has changed in the meantime: its ETag is now ${tag}.`
  }
  return ifNoneMatch !== undefined && lists(ifNoneMatch, tag) ? `It already exists with the ETag ${tag}.` : undefined
}

function planPut(
  state: PolicyState,
  kind: EntityKind,
  name: string,
  request: RequestOf<ReturnType<typeof sectionOperations>['put']>,
) {
  const before = state.get(kind, name)
  const broken = brokenCondition(before, request)
  if (broken !== undefined) return reject(preconditionFailed(broken))
  const body = bodyOf(kind, name, request.body)
  if (typeof body === 'string') return reject(changeRejected([{ path: `${kind} ${name}`, message: body }]))
  const origin = (request.headers['weir-origin'] as EntityOrigin | undefined) ?? 'admin'
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
  // What its customer has chosen must not be the next customer's of this name.
  const own = kind === 'subject' && state.get('ownAlerts', name) !== undefined ? [deleteEntity('ownAlerts', name)] : []
  const changes: EntityChange[] = [...keys.map((key) => deleteEntity('key', key)), ...own, deleteEntity(kind, name)]
  const missing = missingChangeScope(request, state, changes)
  if (missing !== undefined) return reject(missing)
  return { kind: 'change', changes, lines: [{ what: 'delete', kind, name }], answer: undefined }
}

const show = (reply: FastifyReply, entity: Entity) =>
  reply.header('etag', entityTag(entity)).header('weir-origin', entity.origin).send(entity.body)

/** `GET|PUT|DELETE /v1/SECTION[/{name}]` of one section, of which `identity` has no names. */
function registerSection(
  app: FastifyInstance,
  sources: Sources,
  changer: PolicyChanger,
  [section, kind]: readonly [string, EntityKind],
): void {
  const { list, read, put, remove } = sectionOperations(section)
  if (kind !== 'identity') {
    servePolicy(app, sources, list, async (state, { query }) =>
      pageOfEntities(state, kind, query, (entity) => {
        const { name, origin, body } = entity
        return { name, origin, etag: entityTag(entity), body }
      }),
    )
  }
  servePolicy(app, sources, read, async (state, { params: { name = kind } }, reply) => {
    const entity = state.get(kind, name)
    return entity === undefined ? answerProblem(reply, noEntity(state, kind, name)) : show(reply, entity)
  })
  serve(app, put, async (request, reply) => {
    const { name = kind } = request.params
    const changed = await changer.change(request.by, (state) => planPut(state, kind, name, request))
    return answerChange(reply, changed, ({ entity, isNew }) => show(reply.code(isNew ? 201 : 200), entity))
  })
  serveChange(app, changer, remove, (state, request) => planDelete(state, kind, request.params.name ?? kind, request))
}

/** `GET|PUT|DELETE /v1/SECTION[/{name}]` for each section with names, and `/v1/identity`. */
export function registerEntities(app: FastifyInstance, sources: Sources, changer: PolicyChanger): void {
  for (const one of Object.entries(sections)) registerSection(app, sources, changer, one)
}
