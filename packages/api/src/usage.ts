import type { TSchema } from 'typebox'
import { answer, media, noBody, type Operation, operation } from './operation.ts'
import { streamTypes } from './query/answer-form.ts'
import { type UsageDimension, usageDimensions } from './query/columns.ts'
import { outcomeParameters, usageParameters } from './query/parameters.ts'
import {
  flag,
  list,
  next,
  numberOrNull,
  type Of,
  object,
  optional,
  page,
  text,
  textOrNull,
  texts,
  time,
  whole,
} from './schema.ts'
import { Type } from './type.ts'

const tag = 'usage'

/** How far an answer is complete. */
export const completeness = {
  complete_through: textOrNull(
    'all before it is counted, but for what silent journals hold; null: nothing is known yet',
  ),
  silent: list(
    object({
      journal: optional(text('process start; absent for callers limited to subjects')),
      since: text('its last mark'),
    }),
    'journals that have said nothing for a minute while others did; what they hold is counted later',
  ),
}

/** What is missing of an answer. */
export const gaps = list(
  object({
    cause: text('as in weir.gaps'),
    partition: optional(whole()),
    count: optional(Type.Unsafe<number | string>({ type: ['integer', 'string'], description: 'decisions or records' })),
    from: textOrNull('RFC 3339; null: not known'),
    to: textOrNull('RFC 3339; null: not known'),
  }),
  'what is missing for good and may be of this time, the last noticed first, at most 100',
)

/**
 * A sum: every digit, also beyond 2^53, where many readers round. A text where `numbers` asks for it, as programs here
 * do, else a number.
 */
const sum = (description: string) =>
  Type.Unsafe<string>({
    type: ['integer', 'string', 'null'],
    description: `${description}; text if so asked; null with \`fill\` where it is not counted yet`,
  })
const quantile = (share: string) =>
  numberOrNull(
    `milliseconds that ${share} of the answers took at most, within about a hundredth; null: there were none`,
  )

const ts = optional(text('start of the step, with the offset of its zone; absent for `total`'))
const named = optional(text('where `by` names it'))
const usageSums = {
  count: sum('decisions'),
  allowed: sum('decisions'),
  denied: sum('decisions'),
  cost: sum('units that the allowed ones used, corrections included'),
}
/** What a sum of usage has with `compare`. */
const compared = {
  previous: optional(object(usageSums, 'the same of the earlier span; with `compare`')),
  change: optional(
    numberOrNull('of the sum in `order`, from then to now: 0.12 is 12% more; null from 0; with `compare`'),
  ),
}
const usageRow = object({
  ts,
  ...(Object.fromEntries(usageDimensions.map((name) => [name, named])) as Record<UsageDimension, typeof named>),
  other: optional(flag('true in the row that sums the groups beyond `top`; absent in all others')),
  groups: optional(sum('groups that the other row sums; absent in all others')),
  amount: optional(textOrNull('with `price=true`: decimal; null without a price list')),
  currency: optional(textOrNull('with `price=true`: ISO 4217')),
  ...usageSums,
  ...compared,
})
const answers = sum('answers')
const outcomeRow = object({
  ts,
  subject: named,
  route: named,
  method: named,
  count: answers,
  status_1xx: answers,
  status_2xx: answers,
  status_3xx: answers,
  status_4xx: sum('answers; 499 are those whose client was gone before'),
  status_5xx: answers,
  broken: sum('answers that did not go out whole'),
  bytes_in: sum('of the requests’ bodies'),
  bytes_out: sum('of the answers’ bodies'),
  p50_ms: quantile('half'),
  p90_ms: quantile('90%'),
  p99_ms: quantile('99%'),
})

/** A row of usage. */
export type UsageRow = Of<typeof usageRow>
/** A row of outcomes. */
export type OutcomeRow = Of<typeof outcomeRow>

/** The columns of both whose values are sums: ClickHouse's text becomes a number of the same digits. */
export const sumNames: ReadonlySet<string> = new Set([
  ...Object.keys(usageSums),
  'groups',
  ...Object.keys(outcomeRow.properties).filter((name) => /^(?:status_|bytes_|broken)/.test(name)),
])

const answerHeaders = {
  headers: {
    ETag: text('of pages, where all until `to` is counted; send it as `If-None-Match`'),
    'Weir-Gaps': whole('of streams: how many gaps there are, at most 100'),
    'Weir-Complete-Through': text('of streams: as `complete_through`; absent: nothing is known yet'),
    'Weir-Silent': whole('of streams: how many journals are silent'),
  },
}
const streams = Object.fromEntries(
  Object.values(streamTypes).map((type) => [type.split(';')[0] ?? type, { type: 'string' }]),
)

const rowsOf = <Row extends TSchema>(row: Row) =>
  object({
    from: text('RFC 3339; cut to the start of the bucket that it is in'),
    to: text('RFC 3339; moved to the end of the bucket that it is in'),
    step: text('hour, day, …'),
    time_zone: text('of the steps'),
    source: text('the table that the rows are sums of'),
    ...completeness,
    gaps,
    cut_off: flag('whether there are more rows than this page has'),
    next,
    rows: list(row),
    previous: optional(object({ from: text('RFC 3339'), to: text('RFC 3339') }, 'with `compare`')),
  })
const usage = object({
  ...rowsOf(usageRow).properties,
  totals: object({ ...usageSums, ...compared }, 'all rows of all pages, summed by themselves'),
})
const outcomes = rowsOf(outcomeRow)
/** A page of usage. */
export type Usage = Of<typeof usage>
/** A page of outcomes. */
export type Outcomes = Of<typeof outcomes>

const notModified = noBody('What `If-None-Match` names is still the answer')
const asked = { tag, scope: 'usage', reach: 'own', isParsed: true, problems: [422, 429, 503, 504] } as const

/** Who used what, when. */
export const getUsage = operation('GET /v1/usage', {
  ...asked,
  summary: 'Usage, summed',
  query: usageParameters,
  answers: { 200: media('Usage', { ...streams, 'application/json': usage }, answerHeaders), 304: notModified },
})
/** How upstreams answered, and how fast. */
export const getOutcomes = operation('GET /v1/outcomes', {
  ...asked,
  summary: 'Statuses, latencies and bytes of the answers of upstreams',
  query: outcomeParameters,
  answers: { 200: media('Outcomes', { ...streams, 'application/json': outcomes }, answerHeaders), 304: notModified },
})

/** The values of a column of usage, for those who fill in a filter. */
export const listValues = operation('GET /v1/dimensions/:name', {
  tag,
  scope: 'usage',
  reach: 'own',
  summary: 'The values of a column of usage, the most frequent first',
  params: { name: text(usageDimensions.join(', ')) },
  query: {
    prefix: optional(text('only values that begin so', { maxLength: 512 })),
    subject: optional(texts('only of these subjects', { maxItems: 100 })),
    from: optional(time('as in /v1/usage; 24 hours before `to` if absent')),
    to: optional(time('the same; now if absent')),
    time_zone: optional(text('where dates begin; UTC if absent')),
    after: optional(text('`next` of the page before')),
  },
  answers: {
    200: answer(
      'A page of values',
      object({
        from: text('RFC 3339, widened'),
        to: text('RFC 3339, widened'),
        source: text('the table'),
        ...completeness,
        ...page(
          object({
            value: text('as in filters'),
            count: Type.Unsafe<string>({ type: 'integer', description: 'decisions' }),
          }),
        ).properties,
      }),
    ),
  },
  problems: [404, 422, 503, 504],
})

/** The same with its parameters in a body, for what is too long for an address. */
const inBody = ({ query, answers: { 200: found }, ...parts }: Operation): Operation => ({
  ...parts,
  method: 'POST',
  ...(query === undefined ? {} : { body: query }),
  answers: found === undefined ? {} : { 200: found },
})
/** Who used what, when. */
export const askUsage = inBody(getUsage)
/** How upstreams answered, and how fast. */
export const askOutcomes = inBody(getOutcomes)
