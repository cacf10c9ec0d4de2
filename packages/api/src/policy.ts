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
export const origin = oneOf(entityOrigins, 'who has made it: weir apply, or this API')

const entity = object({ name: text('its name'), origin, etag: text('for If-Match'), body: anyObject() })
/** A part of the policy in a list. */
export type Entity = Of<typeof entity>
const entityPage = page(entity)

/** Parts of the policy that are changed one by one, by the section that has them; all but `identity` have a name. */
export const sections = Object.fromEntries(
  (
    [
      'plan',
      'price',
      'limit',
      'route',
      'refusal',
      'upstream',
      'endpoint',
      'watch',
      'unsubscribed',
      'subject',
      'identity',
    ] as const
  ).map((kind) => [sectionOf[kind], kind]),
) as Readonly<Record<string, Exclude<EntityKind, 'key'>>>

const entityHeaders = object({
  'if-match': optional(text('only if the ETag is still this')),
  'if-none-match': optional(text('`*`: only if there is none')),
  'weir-origin': optional(
    oneOf(
      entityOrigins,
      '`file`: it counts as part of the file applied last, and goes with the next one that does not have it',
    ),
  ),
})

/** The operations of one section of the policy. */
export function sectionOperations(section: string) {
  const isNamed = section !== 'identity'
  const path = `/v1/${section}${isNamed ? '/:name' : ''}` as const
  const what = isNamed ? `one of the ${section}` : section
  const scope = isNamed ? 'write' : 'admin'
  const words = 'as in weir.yaml; of a route its `match`, such as `GET /v1/users`'
  // A name that breaks these rules is as unknown as any, and cannot be made.
  const params = isNamed
    ? { params: { name: text(words, { described: { ...nameSchema(section), description: words } }) } }
    : {}
  return {
    list: operation(`GET /v1/${section}`, {
      tag: section,
      scope: 'read',
      summary: `All ${section}, by name`,
      query: pageQuery,
      answers: { 200: answer('A page', entityPage) },
      problems: [503],
    }),
    read: operation(`GET ${path}`, {
      tag: section,
      scope: 'read',
      summary: `Read ${what}, as in weir.yaml`,
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
      answers: { 200: answer('Replaced, or so already', anyObject()), 201: answer('Created', anyObject()) },
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
  summary: 'The policy as a file: JSON, or YAML with Accept: application/yaml',
  query: { subject: optional(text('of all subjects only this one')) },
  answers: {
    200: media('As weir.yaml; sha256 of keys with the scope keys only, of tokens with admin only', {
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
    'keep: a key that this API has ended or changed since; the file does not bring it back',
  ),
  kind: text('plan, limit, …'),
  name: text('its name; of a key its id'),
  before: anyObjectOrNull(),
  after: anyObjectOrNull(),
})
const applied = object({
  dry_run: flag(),
  changed: flag('whether the policy differs, or did, from the file'),
  revision: text('of the file, as the audit has it'),
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
  summary: 'Apply a file: what it no longer has goes, what this API has made stays',
  ...fileBody,
  query: {
    dry_run: defaulted(flag('only say what would change', { default: false })),
    if_changed: defaulted(flag('do nothing if the file applied last has this revision', { default: false })),
    revision: optional(text("hex; the file's SHA-256 if left out", { pattern: '^[0-9a-f]{8,64}$' })),
  },
  headers: object({
    'if-match': optional(text('only if the ETag of `GET /v1/policy` is still this: the newest change')),
    'weir-origin': optional(
      oneOf(
        entityOrigins,
        '`admin`: no file but an edit of the whole policy: each part stays whose it is, what the text lacks is deleted, and the file applied last stays the last. `file` if absent',
      ),
    ),
  }),
  answers: { 200: answer('What changed, or would', applied) },
  problems: [409, 412, 422, 503],
})

/**
 * Subjects of an impact that names none: `asked` make most of the traffic of most services. Each takes three
 * statements, one after the other, within the time that a person waits.
 */
export const impactSubjects = { asked: 20, most: 100 } as const
const refused = { before: whole('refused, as recorded'), after: whole('refused by the edited policy') }
const impact = object({
  from: text('RFC 3339'),
  to: text('RFC 3339'),
  ...completeness,
  gaps,
  exact: flag('this is what the edited policy decides for these requests'),
  assumptions: texts('what the numbers rest on'),
  subjects: whole('whose requests were decided again'),
  decisions: whole('of these subjects'),
  share: numberOrNull('of all decisions of the span, 0 to 1; null where none was made'),
  refused: object(refused),
  to_refused: whole('admitted then, refused now'),
  to_admitted: whole('refused then, admitted now'),
  limits: list(
    object({
      limit: text('its name'),
      edit: oneOf(
        ['added', 'removed', 'changed', 'applied', 'unchanged'],
        'applied: to other requests, or otherwise to some; unchanged: it refuses otherwise because of others',
      ),
      ...refused,
      subjects: list(object({ subject: text('its id'), ...refused }), 'whose refusals change, the most refusals first'),
      routes: list(object({ route: text('its template'), ...refused }), 'the same by route, 10 at most'),
    }),
  ),
})
/** Which requests of the last days an edited policy would have refused. */
export type Impact = Of<typeof impact>
/** Which requests of the last days an edited policy would have refused. Changes nothing. */
export const getImpact = operation('POST /v1/policy/impact', {
  tag,
  scope: 'write',
  summary: 'Who would have been refused by an edited policy; changes nothing',
  ...fileBody,
  query: {
    subject: optional(text('only this one')),
    top: optional(
      text(`the subjects with the most decisions, 1 to ${impactSubjects.most}; ${impactSubjects.asked} if absent`, {
        described: { type: 'integer', minimum: 1, maximum: impactSubjects.most, default: impactSubjects.asked },
      }),
    ),
    from: optional(time('as of usage; 7 days before `to` if absent, and no more')),
    to: optional(time('the same; now if absent')),
  },
  answers: { 200: answer('The impact', impact) },
  problems: [409, 422, 429, 503, 504],
})

/** The same of one limit in another form, without a file. Changes nothing. */
export const getLimitImpact = operation('POST /v1/limits/:name/impact', {
  tag: 'limits',
  scope: 'write',
  summary: 'Who would have been refused by a limit in another form; changes nothing',
  params: { name: text('of the limit') },
  body: closed({
    settings: Type.Unsafe<JsonObject>({ type: 'object', described: partSchema('limits') }),
    subjects: optional(
      texts(`only these, at most ${impactSubjects.most}; else the ${impactSubjects.asked} with the most decisions`),
    ),
    from: optional(time('as of usage; 7 days before `to` if absent, and no more')),
    to: optional(time('the same; now if absent')),
  }),
  answers: { 200: answer('The impact', impact) },
  problems: [404, 409, 422, 429, 503, 504],
})

const changeFields = {
  id: text('as in the header Weir-Change of the answer to it'),
  at: text('when, by the clock of the console'),
  by: text('name of the token; `root` for the one of the environment'),
  summary: list(
    object({
      what: text('put, delete, create, rotate, revoke, reset, unblock'),
      kind: text('of what'),
      name: text('its name; of a key its id'),
    }),
    'the first lines of a long change',
  ),
  total: whole('lines in all'),
}
const listedChange = object(changeFields)
/** A change of the policy in a list. */
export type ListedChange = Of<typeof listedChange>
/** Who changed what and when. */
export const listChanges = operation('GET /v1/changes', {
  tag: 'changes',
  scope: 'read',
  summary: 'Who changed what, newest first',
  query: pageQuery,
  answers: { 200: answer('A page', page(listedChange)) },
})

const change = object({
  ...changeFields,
  entities: list(
    object({
      kind: text('limit, plan, route, price or subject'),
      name: text('its name'),
      before: anyObjectOrNull('as the change found it; null: it was not there'),
      after: anyObjectOrNull('as the change left it; null: it was deleted'),
    }),
    'what limits requests and is otherwise now; 1,000 at most',
  ),
})
/** One change, with the parts of the policy before and after it. */
export type Change = Of<typeof change>
/** What one change has changed. */
export const getChange = operation('GET /v1/changes/:id', {
  tag: 'changes',
  scope: 'read',
  summary: 'What one change has changed, before and after',
  params: { id: text('a UUID, as in `GET /v1/changes`') },
  answers: { 200: answer('The change', change) },
  problems: [404, 503],
})
