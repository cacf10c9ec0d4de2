import { costMax } from '@weir/core/limits/limit-store.ts'
import { answer, media, noBody, operation } from './operation.ts'
import { after } from './query/parameters.ts'
import {
  address,
  closed,
  defaulted,
  described,
  flag,
  flagOrNull,
  list,
  methodAndPath,
  next,
  type Of,
  object,
  oneOf,
  optional,
  optionalBody,
  text,
  textOrNull,
  texts,
  textsByName,
  whole,
  wholeOrNull,
} from './schema.ts'

const hidden = 'null if the count is not fully named, and for callers limited to subjects if others share it'
const limitState = object({
  name: text('limit name'),
  title: textOrNull('name shown to customers'),
  about: textOrNull('description shown to customers'),
  because: texts("why the limit applies, such as `plan free`, or `acme's own size instead of 100`"),
  algorithm: text('fixed_window, …'),
  mode: text('enforce or shadow'),
  currency: textOrNull('of a limit of money: ISO 4217; its units are billionths of it. null: no money'),
  size: whole('units of a window or period'),
  capacity: whole('the most units that can be used at once'),
  window_ms: wholeOrNull('null for a calendar period'),
  period: textOrNull('minute, hour, day, week, month; null for a window'),
  by: texts('what the limit counts by'),
  used: wholeOrNull(`units; ${hidden}`),
  remaining: wholeOrNull('units; null as for `used`'),
  reset_ms: wholeOrNull('until the limit is completely unused, without further requests; null as for `used`'),
  blocked_ms: wholeOrNull('how long the caller stays blocked; 0: not blocked; null if the count is not fully named'),
  admits: flagOrNull('whether the limit would admit the request; null: unknown'),
  retry_ms: whole('the wait until the limit would admit the request; -1: waiting does not help'),
})
/** How a limit of a subject stands now. */
export type LimitState = Of<typeof limitState>
const subjectLimits = object({
  subject: text('subject id'),
  plan: text('plan of the subject; empty: none'),
  plan_title: textOrNull('plan name shown to customers'),
  plan_about: textOrNull('description shown to customers'),
  time_zone: text('time zone of calendar periods'),
  anchor: whole('day of the month on which billing months begin'),
  route: textOrNull('template of the requested route; null: none'),
  cost: whole('units of the request'),
  allowed: flagOrNull('whether the request would be allowed now; null if the parameters leave that open'),
  denied_by: text('limit that refuses the request; empty: none'),
  limits: list(limitState),
})
/** How the limits of a subject stand now. */
export type SubjectLimits = Of<typeof subjectLimits>

const ofSubject = { id: text('subject id') }
const limitsTag = { tag: 'limits' } as const

/** How much is left of each limit of a subject, and when it comes back. */
export const getLimits = operation('GET /v1/subjects/:id/limits', {
  ...limitsTag,
  scope: 'read',
  orScope: 'limits',
  reach: 'own',
  summary: 'Get the current state of a subject’s limits',
  params: ofSubject,
  query: {
    limit: optional(text('only this limit')),
    route: optional(methodAndPath('a request, such as `POST /v1/search`; default: all limits of the subject')),
    key_id: optional(text('id of a key of the subject, for limits by key')),
    ip: optional(address('an address, for limits by address; not for callers limited to subjects')),
    cost: optional(
      whole('units of the request; default: the route’s cost, else 1; not for callers limited to subjects', {
        minimum: 0,
        maximum: costMax,
      }),
    ),
  },
  answers: { 200: answer('Its limits', subjectLimits) },
  problems: [404, 429, 503],
})

const changedLimits = object({
  subject: text('subject id'),
  changed: list(
    object({
      name: text('limit name'),
      keys: whole('number of keys that existed'),
      used_up: whole('unblocked counts with no unit left: the next request blocks again'),
    }),
  ),
  left: list(object({ name: text('limit name'), because: text('why the limit was left unchanged') })),
})
const countChange = {
  ...limitsTag,
  scope: 'limits',
  params: ofSubject,
  body: optionalBody({
    limit: optional(text('only this limit')),
    ip: optional(address('for limits by address')),
    key_id: optional(text('for limits by key: the id of the key')),
    route: optional(methodAndPath('only limits that apply to this request, such as `POST /v1/search`')),
  }),
  answers: { 200: answer('The result', changedLimits) },
  problems: [404, 503],
} as const
/** Forgets what was counted, and lifts blocks. */
export const resetLimits = operation('POST /v1/subjects/:id/limits/reset', {
  ...countChange,
  summary: 'Reset counts and lift blocks',
})
/** Lifts blocks; what was counted stays. */
export const unblockLimits = operation('POST /v1/subjects/:id/limits/unblock', {
  ...countChange,
  summary: 'Lift blocks but keep counts',
})

const block = object({
  id: text('for POST /v1/blocks/{id}/lift'),
  limit: textOrNull('limit name; null: manual block'),
  subject: textOrNull('blocked subject; null if subjects share the count, or if a key or an address is blocked'),
  key_id: optional(textOrNull('manual block: the blocked key')),
  ip: textOrNull('the blocked address or network; null if the limit does not count by address, or records lack it'),
  exempt: optional(flag('manual exemption: no block of this address and no limit by address applies')),
  scope: textsByName('what the limit counted by besides the subject, as recorded'),
  since: text('RFC 3339; when the block was set'),
  until: text('RFC 3339; when the block ends, by the clock of Redis (manual block: of the ingress)'),
  refusals: wholeOrNull('requests refused since then; null: manual block'),
  decision: textOrNull('id of the refusal that appears to have set the block; null: manual block'),
  by: optional(textOrNull('manual block: name of the token that created it')),
  reason: optional(textOrNull('manual block: why')),
})
/** A block that stands. */
export type Block = Of<typeof block>
const blockPage = object({ complete: flag('false: there may be more blocks'), items: list(block), next })
/** A page of blocks. */
export type BlockPage = Of<typeof blockPage>

const blocksTag = { tag: 'blocks' } as const
/** Which callers limits block now. */
export const listBlocks = operation('GET /v1/blocks', {
  ...blocksTag,
  scope: 'read',
  orScope: 'limits',
  summary: 'List current blocks',
  query: {
    limit: optional(text('only blocks by this limit; with `format=text` also manual ones')),
    subject: optional(text('only blocks of this subject, `ip:ADDRESS` for an anonymous caller')),
    ip: optional(
      address(
        'only blocks on this address (or its hash), only rows with this recorded address; an IPv6 address matches its network',
      ),
    ),
    format: defaulted(described(oneOf(['json', 'text']), '`text`: only the addresses', { default: 'json' })),
    after,
  },
  answers: {
    200: media('Current blocks, newest first; as text, one address or IPv6 network per line, sorted', {
      'application/json': blockPage,
      'text/plain': { type: 'string' },
    }),
    304: noBody('The list has not changed'),
  },
  problems: [409, 503],
})

const newBlock = closed({
  subject: optional(text('the subject to block')),
  key_id: optional(text('or the key to block, by its id')),
  ip: optional(
    text(
      'or the address, or network such as `198.51.100.0/24`, to block or exempt; an IPv6 address stands for its network',
    ),
  ),
  exempt: optional(flag('with `ip`: exempt the address from blocks and limits by address')),
  for: text('1m to 366d'),
  reason: optional(text('why, shown in the list; up to 200 characters')),
})
/** Whom to block or exempt. */
export type NewBlock = Of<typeof newBlock>
/** Blocks or exempts a caller by hand. */
export const blockCaller = operation('POST /v1/blocks', {
  ...blocksTag,
  scope: 'limits',
  summary: 'Block a subject, a key or an address for a while, or exempt an address',
  body: newBlock,
  answers: { 201: answer('The block', block) },
  problems: [422, 503],
})

const liftedBlock = object({
  limit: textOrNull('limit name; null: manual block'),
  subject: textOrNull('subject that was blocked; null if subjects share the count'),
  lifted: flag('false: the block had already ended'),
  forgotten: flag('whether the count was reset'),
  used_up: flag('the count has no unit left: the next request is refused and blocks again'),
})
/** What lifting a block did. */
export type LiftedBlock = Of<typeof liftedBlock>
/** Ends one block now. */
export const liftBlock = operation('POST /v1/blocks/:id/lift', {
  ...blocksTag,
  scope: 'limits',
  summary: 'Lift a block; its count is kept unless `forget` is set',
  params: { id: text('block id, as in GET /v1/blocks') },
  body: optionalBody({ forget: optional(flag('also reset the count')) }),
  answers: { 200: answer('The result', liftedBlock) },
  problems: [404, 503],
})
