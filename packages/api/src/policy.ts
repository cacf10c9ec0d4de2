import { type EntityKind, entityOrigins, type JsonObject, sectionOf } from '@weir/policy/entities.ts'
import { policySchema } from '@weir/policy/reader/parse-policy.ts'
import { nameSchema, partSchema } from '@weir/policy/reader/part-schema.ts'
import { answer, media, noBody, operation } from './operation.ts'
import {
  anyObject,
  anyObjectOrNull,
  closed,
  defaulted,
  flag,
  list,
  numberOrNull,
  type Of,
  object,
  oneOf,
  optional,
  page,
  pageQuery,
  text,
  texts,
  time,
  whole,
} from './schema.ts'
import { Type } from './type.ts'
import { completeness, gaps } from './usage.ts'

const tag = 'policy'

/** Who has made an entity. */
export const origin = oneOf(entityOrigins, '`file`: from weir apply; `admin`: from this API')

const entity = object({ name: text('name of the part'), origin, etag: text('for If-Match'), body: anyObject() })
/** A part of the policy in a list. */
export type Entity = Of<typeof entity>
const entityPage = page(entity)

/** Parts of the policy that are changed one by one, by the section that has them; all but `identity` have a name. */
export const sections = Object.fromEntries(
  (
    [
      'plan',
      'price',
      'rateCard',
      'limit',
      'route',
      'refusal',
      'upstream',
      'meter',
      'endpoint',
      'watch',
      'unsubscribed',
      'subject',
      'identity',
    ] as const
  ).map((kind) => [sectionOf[kind], kind]),
) as Readonly<Record<string, Exclude<EntityKind, 'key'>>>

const entityHeaders = object({
  'if-match': optional(text('proceed only if this is still the ETag')),
  'if-none-match': optional(text('`*`: proceed only if none exists')),
  'weir-origin': optional(
    oneOf(entityOrigins, '`file`: belongs to the file applied last; deleted by the next file without it'),
  ),
})

/** The operations of one section of the policy. */
export function sectionOperations(section: string) {
  const isNamed = section !== 'identity'
  const path = `/v1/${section}${isNamed ? '/:name' : ''}` as const
  const what = isNamed ? `one of the ${section}` : section
  const scope = isNamed ? 'write' : 'admin'
  const words = 'as in weir.yaml; for a route its `match`, such as `GET /v1/users`'
  // A name that breaks these rules is as unknown as any, and cannot be made.
  const params = isNamed
    ? { params: { name: text(words, { described: { ...nameSchema(section), description: words } }) } }
    : {}
  return {
    list: operation(`GET /v1/${section}`, {
      tag: section,
      scope: 'read',
      summary: `List ${section} by name`,
      query: pageQuery,
      answers: { 200: answer('A page', entityPage) },
      problems: [503],
    }),
    read: operation(`GET ${path}`, {
      tag: section,
      scope: 'read',
      summary: `Get ${what}, as in weir.yaml`,
      // Whatever is sent as a name is looked up.
      ...(isNamed ? { params: { name: text(words) } } : {}),
      answers: { 200: answer('As in weir.yaml', anyObject()) },
      problems: [404, 503],
    }),
    put: operation(`PUT ${path}`, {
      tag: section,
      scope,
      summary: `Create or replace ${what}`,
      ...params,
      headers: entityHeaders,
      body: Type.Unsafe<JsonObject>({ type: 'object', described: partSchema(section) }),
      answers: { 200: answer('Replaced, or unchanged', anyObject()), 201: answer('Created', anyObject()) },
      problems: [409, 412, 422, 503],
    }),
    remove: operation(`DELETE ${path}`, {
      tag: section,
      scope,
      summary: `Delete ${what}`,
      ...(isNamed ? { params: { name: text(words) } } : {}),
      headers: entityHeaders,
      answers: { 204: noBody('Deleted') },
      problems: [404, 409, 412, 422, 503],
    }),
  }
}

/** The policy as a file. */
export const getPolicy = operation('GET /v1/policy', {
  tag,
  scope: 'read',
  summary: 'Get the policy as a file: JSON, or YAML with Accept: application/yaml',
  query: { subject: optional(text('include only this subject')) },
  answers: {
    200: media('As weir.yaml; sha256 of keys only with the scope `keys`, of tokens only with `admin`', {
      'application/json': anyObject(),
      'application/yaml': { type: 'string' },
    }),
  },
  problems: [404, 503],
})

/** Changes that an answer lists; the counts are of all. */
export const shownChangesMax = 1_000
const appliedChange = object({
  action: oneOf(
    ['create', 'update', 'delete', 'keep'],
    'keep: a key that this API has since revoked or changed; the file does not restore it',
  ),
  kind: text('plan, limit, …'),
  name: text('name; for a key its id'),
  before: anyObjectOrNull(),
  after: anyObjectOrNull(),
})
const applied = object({
  dry_run: flag(),
  changed: flag('whether the file changes the policy'),
  revision: text('revision of the file, as in the audit log'),
  created: whole(),
  updated: whole(),
  deleted: whole(),
  changes: list(appliedChange, `at most ${shownChangesMax}`),
})
/** What applying a file changed, or would. */
export type Applied = Of<typeof applied>

const { $schema: _, $id: __, ...policyFile } = policySchema
/** The body of a request is a policy file. */
const fileBody = {
  consumes: ['application/yaml', 'application/json'],
  body: Type.Unsafe<string>({ described: policyFile }),
}
/** Applies a file. */
export const applyPolicy = operation('PUT /v1/policy', {
  tag,
  scope: 'write',
  summary: 'Apply a policy file; parts it no longer has are deleted, parts created through this API stay',
  ...fileBody,
  query: {
    dry_run: defaulted(flag('only preview the changes', { default: false })),
    if_changed: defaulted(flag('do nothing if the last applied file has this revision', { default: false })),
    revision: optional(text("hex; default: the file's SHA-256", { pattern: '^[0-9a-f]{8,64}$' })),
  },
  headers: object({
    'if-match': optional(text('proceed only if this is still the ETag of `GET /v1/policy` (the newest change)')),
    'weir-origin': optional(
      oneOf(
        entityOrigins,
        '`admin`: an edit of the whole policy, not a file: each part keeps its origin, missing parts are deleted, and the last applied file stays the last. Default: `file`',
      ),
    ),
  }),
  answers: { 200: answer('The changes, made or previewed', applied) },
  problems: [409, 412, 422, 503],
})

/**
 * Subjects of an impact that names none: `asked` make most of the traffic of most services. Each takes three
 * statements, one after the other, within the time that a person waits.
 */
export const impactSubjects = { asked: 20, most: 100 } as const
const refused = { before: whole('refused, as recorded'), after: whole('refused under the edited policy') }
const impact = object({
  from: text('RFC 3339'),
  to: text('RFC 3339'),
  ...completeness,
  gaps,
  exact: flag('true: exactly how the edited policy would decide these requests'),
  assumptions: texts('assumptions behind the numbers'),
  subjects: whole('subjects whose requests were decided again'),
  decisions: whole('decisions of these subjects'),
  share: numberOrNull('share of all decisions in the period, 0 to 1; null: there were none'),
  refused: object(refused),
  to_refused: whole('admitted then, refused now'),
  to_admitted: whole('refused then, admitted now'),
  limits: list(
    object({
      limit: text('limit name'),
      edit: oneOf(
        ['added', 'removed', 'changed', 'applied', 'unchanged'],
        'applied: applies to other requests, or differently; unchanged: only other limits change its refusals',
      ),
      ...refused,
      subjects: list(object({ subject: text('its id'), ...refused }), 'whose refusals change, most refusals first'),
      routes: list(object({ route: text('route template'), ...refused }), 'the same by route, at most 10'),
    }),
  ),
})
/** Which requests of the last days an edited policy would have refused. */
export type Impact = Of<typeof impact>
/** Which requests of the last days an edited policy would have refused. Changes nothing. */
export const getImpact = operation('POST /v1/policy/impact', {
  tag,
  scope: 'write',
  summary: 'Preview the impact of an edited policy: who would have been refused',
  ...fileBody,
  query: {
    subject: optional(text('only this subject')),
    top: optional(
      text(`the subjects with the most decisions, 1 to ${impactSubjects.most}; default ${impactSubjects.asked}`, {
        described: { type: 'integer', minimum: 1, maximum: impactSubjects.most, default: impactSubjects.asked },
      }),
    ),
    from: optional(time('as in /v1/usage; default and maximum: 7 days before `to`')),
    to: optional(time('as `from`; default: now')),
  },
  answers: { 200: answer('The impact', impact) },
  problems: [409, 422, 429, 503, 504],
})

/** The same of one limit in another form, without a file. Changes nothing. */
export const getLimitImpact = operation('POST /v1/limits/:name/impact', {
  tag: 'limits',
  scope: 'write',
  summary: 'Preview the impact of an edited limit: who would have been refused',
  params: { name: text('limit name') },
  body: closed({
    settings: Type.Unsafe<JsonObject>({ type: 'object', described: partSchema('limits') }),
    subjects: optional(
      texts(`only these, at most ${impactSubjects.most}; default: the ${impactSubjects.asked} with the most decisions`),
    ),
    from: optional(time('as in /v1/usage; default and maximum: 7 days before `to`')),
    to: optional(time('as `from`; default: now')),
  }),
  answers: { 200: answer('The impact', impact) },
  problems: [404, 409, 422, 429, 503, 504],
})

const changeFields = {
  id: text('change id, as in the response header Weir-Change'),
  at: text('time of the change, by the clock of the console'),
  by: text('name of the token; `root`: the token from the environment'),
  summary: list(
    object({
      what: text('put, delete, create, rotate, revoke, reset, unblock'),
      kind: text('kind of entity'),
      name: text('name; for a key its id'),
    }),
    'the changes; only the first of a long list',
  ),
  total: whole('total number of changes'),
}
const listedChange = object(changeFields)
/** A change of the policy in a list. */
export type ListedChange = Of<typeof listedChange>
/** Who changed what and when. */
export const listChanges = operation('GET /v1/changes', {
  tag: 'changes',
  scope: 'read',
  summary: 'List changes to the policy and who made them, newest first',
  query: pageQuery,
  answers: { 200: answer('A page', page(listedChange)) },
})

const change = object({
  ...changeFields,
  entities: list(
    object({
      kind: text('limit, plan, route, price or subject'),
      name: text('name of the entity'),
      before: anyObjectOrNull('before the change; null: did not exist'),
      after: anyObjectOrNull('after the change; null: deleted'),
    }),
    'changed entities that affect limits; at most 1,000',
  ),
})
/** One change, with the parts of the policy before and after it. */
export type Change = Of<typeof change>
/** What one change has changed. */
export const getChange = operation('GET /v1/changes/:id', {
  tag: 'changes',
  scope: 'read',
  summary: 'Get one change, before and after',
  params: { id: text('a UUID, as in `GET /v1/changes`') },
  answers: { 200: answer('The change', change) },
  problems: [404, 503],
})
