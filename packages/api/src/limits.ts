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

const hidden = 'null where it counts by more than was named, and for callers limited to subjects where others share it'
const limitState = object({
  name: text('of the limit'),
  title: textOrNull('what customers see instead of the name'),
  about: textOrNull('a sentence about it for customers'),
  because: texts("why it applies, such as `plan free`; `acme's own size instead of 100` where the subject has one"),
  algorithm: text('fixed_window, …'),
  mode: text('enforce or shadow'),
  size: whole('units of a window or period'),
  capacity: whole('the most that can be used at one moment'),
  window_ms: wholeOrNull('null for a calendar period'),
  period: textOrNull('minute, hour, day, week, month; null for a window'),
  by: texts('what it counts by'),
  used: wholeOrNull(`units; ${hidden}`),
  remaining: wholeOrNull('units; null as used'),
  reset_ms: wholeOrNull('until nothing of it is used, if no request comes; null as used'),
  blocked_ms: wholeOrNull(
    'how long the caller is blocked from now on; 0: not; null where it counts by more than was named',
  ),
  admits: flagOrNull('whether it has room for the request; null: not known'),
  retry_ms: whole('the wait until it has room; -1: waiting does not help'),
})
/** How a limit of a subject stands now. */
export type LimitState = Of<typeof limitState>
const subjectLimits = object({
  subject: text('whose'),
  plan: text('its plan; empty for none'),
  plan_title: textOrNull('what customers see instead of its name'),
  plan_about: textOrNull('a sentence about it for customers'),
  time_zone: text('of its calendar periods'),
  anchor: whole('day of the month on which its months begin'),
  route: textOrNull('template of the route that was named; null for none'),
  cost: whole('units of the request'),
  allowed: flagOrNull('whether the request would be allowed now; null where that depends on what was not named'),
  denied_by: text('limit that refuses; empty for none'),
  limits: list(limitState),
})
/** How the limits of a subject stand now. */
export type SubjectLimits = Of<typeof subjectLimits>

const ofSubject = { id: text('of the subject') }
const limitsTag = { tag: 'limits' } as const

/** How much is left of each limit of a subject, and when it comes back. */
export const getLimits = operation('GET /v1/subjects/:id/limits', {
  ...limitsTag,
  scope: 'read',
  orScope: 'limits',
  reach: 'own',
  summary: 'How the limits of a subject stand now',
  params: ofSubject,
  query: {
    limit: optional(text('only this limit')),
    route: optional(methodAndPath('a request, such as `POST /v1/search`; all limits of the subject if absent')),
    key_id: optional(text('id of a key of the subject, for limits counted by key')),
    ip: optional(address('an address, for limits counted by it; not for callers limited to subjects')),
    cost: optional(
      whole('units of the request; those of the route if absent, else 1; not for callers limited to subjects', {
        minimum: 0,
        maximum: costMax,
      }),
    ),
  },
  answers: { 200: answer('Its limits', subjectLimits) },
  problems: [404, 429, 503],
})

const changedLimits = object({
  subject: text('whose'),
  changed: list(
    object({
      name: text('of the limit'),
      keys: whole('keys that were there'),
      used_up: whole('counts of an unblocked limit without room for one unit: the next request blocks again'),
    }),
  ),
  left: list(object({ name: text('of the limit'), because: text('why it is as it was') })),
})
const countChange = {
  ...limitsTag,
  scope: 'limits',
  params: ofSubject,
  body: optionalBody({
    limit: optional(text('only this limit')),
    ip: optional(address('for limits counted by address')),
    key_id: optional(text('for limits counted by key: the id of the key')),
    route: optional(methodAndPath('only what counts for this request, such as `POST /v1/search`')),
  }),
  answers: { 200: answer('What was done', changedLimits) },
  problems: [404, 503],
} as const
/** Forgets what was counted, and lifts blocks. */
export const resetLimits = operation('POST /v1/subjects/:id/limits/reset', {
  ...countChange,
  summary: 'Forget what was counted, and lift blocks',
})
/** Lifts blocks; what was counted stays. */
export const unblockLimits = operation('POST /v1/subjects/:id/limits/unblock', {
  ...countChange,
  summary: 'Lift blocks; what was counted stays',
})

const block = object({
  id: text('for POST /v1/blocks/{id}/lift'),
  limit: textOrNull('of the limit; null: made by hand'),
  subject: textOrNull('whose; null where subjects share the count, or the block is of a key or an address'),
  key_id: optional(textOrNull('by hand: the blocked key')),
  ip: textOrNull('the blocked address or network; null where the limit counts by none, or where records lack it'),
  exempt: optional(flag('by hand: no block of its address and no limit by address applies')),
  scope: textsByName('what the limit counted by beyond the subject, as recorded'),
  since: text('RFC 3339; when it was set'),
  until: text('RFC 3339; when it ends, by the clock of Redis, or by hand of the ingress'),
  refusals: wholeOrNull('requests refused since then; null: made by hand'),
  decision: textOrNull('id of the refusal that seems to have set it; null: made by hand'),
  by: optional(textOrNull('by hand: name of the token that made it')),
  reason: optional(textOrNull('by hand: why')),
})
/** A block that stands. */
export type Block = Of<typeof block>
const blockPage = object({ complete: flag('false: there may be more than were found'), items: list(block), next })
/** A page of blocks. */
export type BlockPage = Of<typeof blockPage>

const blocksTag = { tag: 'blocks' } as const
/** Which callers limits block now. */
export const listBlocks = operation('GET /v1/blocks', {
  ...blocksTag,
  scope: 'read',
  orScope: 'limits',
  summary: 'Who is blocked now',
  query: {
    limit: optional(text('only blocks of this limit; with `format=text` also those by hand')),
    subject: optional(text('only blocks of this subject, `ip:ADDRESS` for an anonymous caller')),
    ip: optional(
      address(
        'only blocks of this address, as far as records have it, or its hash; an IPv6 address stands for its network',
      ),
    ),
    format: defaulted(described(oneOf(['json', 'text']), '`text`: the addresses alone', { default: 'json' })),
    after,
  },
  answers: {
    200: media('Blocks that stand now, the newest first; as text one address or IPv6 network a line, sorted', {
      'application/json': blockPage,
      'text/plain': { type: 'string' },
    }),
    304: noBody('The list has not changed'),
  },
  problems: [409, 503],
})

const newBlock = closed({
  subject: optional(text('the subject to block')),
  key_id: optional(text('or the key to block')),
  ip: optional(
    text(
      'or the address, or network such as `198.51.100.0/24`, to block or exempt; an IPv6 address stands for its network',
    ),
  ),
  exempt: optional(flag('of an address: no block of it and no limit by address applies')),
  for: text('1m to 366d'),
  reason: optional(text('why, for the others who read the list; up to 200 characters')),
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
  limit: textOrNull('of the limit; null: the block was made by hand'),
  subject: textOrNull('whose block it was; null where subjects share the count'),
  lifted: flag('false: there was no block any more'),
  forgotten: flag('whether the count begins again'),
  used_up: flag('the count has no unit left: the next request is refused, and blocks again'),
})
/** What lifting a block did. */
export type LiftedBlock = Of<typeof liftedBlock>
/** Ends one block now. */
export const liftBlock = operation('POST /v1/blocks/:id/lift', {
  ...blocksTag,
  scope: 'limits',
  summary: 'Lift one block; what was counted stays, but for `forget`',
  params: { id: text('as GET /v1/blocks has it') },
  body: optionalBody({ forget: optional(flag('also forget what was counted')) }),
  answers: { 200: answer('What was done', liftedBlock) },
  problems: [404, 503],
})
