import type { TSchema } from 'typebox'
import { answer, media, noBody, type Operation, operation } from './operation.ts'
import { streamTypes } from './query/answer-form.ts'
import { type UsageDimension, unitDimensions, usageDimensions } from './query/columns.ts'
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
  complete_through: textOrNull('all before this is counted, except records in silent journals; null: unknown yet'),
  silent: list(
    object({
      journal: optional(text('process start; absent for callers limited to subjects')),
      since: text('time of its last watermark'),
    }),
    'journals without a watermark for a minute while others had one; their records are counted later',
  ),
}

/** What is missing of an answer. */
export const gaps = list(
  object({
    cause: text('as in weir.gaps'),
    partition: optional(whole()),
    count: optional(Type.Unsafe<number | string>({ type: ['integer', 'string'], description: 'decisions or records' })),
    from: textOrNull('RFC 3339; null: unknown'),
    to: textOrNull('RFC 3339; null: unknown'),
  }),
  'permanent gaps that may fall into this period, latest first, at most 100',
)

/**
 * A sum: every digit, also beyond 2^53, where many readers round. A text where `numbers` asks for it, as programs here
 * do, else a number.
 */
const sum = (description: string) =>
  Type.Unsafe<string>({
    type: ['integer', 'string', 'null'],
    description: `${description}; text with \`numbers=text\`; null with \`fill\` if not counted yet`,
  })
const quantile = (share: string) =>
  numberOrNull(`${share} of responses took at most this many milliseconds, to within about 1%; null: no responses`)

const ts = optional(text('start of the step, with its UTC offset; absent for `total`'))
const named = optional(text('present if named in `by`'))
const usageSums = {
  count: sum('decisions'),
  allowed: sum('decisions'),
  denied: sum('decisions'),
  cost: sum('units used by allowed decisions, including corrections'),
}
/** What a sum of usage has with `compare`. */
const compared = {
  previous: optional(object(usageSums, 'with `compare`: the same sums of the earlier period')),
  change: optional(numberOrNull('with `compare`: change of the sum in `order`: 0.12 is 12% more; null from 0')),
}
const usageRow = object({
  ts,
  ...(Object.fromEntries(usageDimensions.map((name) => [name, named])) as Record<UsageDimension, typeof named>),
  other: optional(flag('true in the row that sums the groups beyond `top`; absent in other rows')),
  groups: optional(sum('number of groups summed in this row; only with `other`')),
  amount: optional(textOrNull('with `price=true`: decimal; null without a price list')),
  currency: optional(textOrNull('with `price=true`: ISO 4217')),
  ...usageSums,
  ...compared,
})
const unitSums = {
  quantity: sum('units used, corrections included; below zero while a decision that was given back is not counted yet'),
  count: sum('records that the quantity was summed from: admissions and corrections'),
}
const comparedUnits = { ...compared, previous: optional(object(unitSums, 'with `compare`: the same sums then')) }
const unitRow = object(
  {
    ts,
    ...(Object.fromEntries(unitDimensions.map((name) => [name, named])) as Record<
      (typeof unitDimensions)[number],
      typeof named
    >),
    other: optional(flag('true in the row that sums the groups beyond `top`; absent in other rows')),
    groups: optional(sum('number of groups summed in this row; only with `other`')),
    ...unitSums,
    ...comparedUnits,
  },
  'with `unit`; also has each `dimension.NAME` of `by`',
)
const answers = sum('responses')
const outcomeRow = object({
  ts,
  subject: named,
  route: named,
  method: named,
  count: answers,
  status_1xx: answers,
  status_2xx: answers,
  status_3xx: answers,
  status_4xx: sum('responses; includes 499: the client disconnected first'),
  status_5xx: answers,
  broken: sum('responses not sent completely'),
  bytes_in: sum('bytes of request bodies'),
  bytes_out: sum('bytes of response bodies'),
  p50_ms: quantile('half'),
  p90_ms: quantile('90%'),
  p99_ms: quantile('99%'),
})

/** A row of usage. */
export type UsageRow = Of<typeof usageRow>
/** A row of outcomes. */
export type OutcomeRow = Of<typeof outcomeRow>
/** A row of usage by unit. */
export type UnitRow = Of<typeof unitRow>

/** The columns of both whose values are sums: ClickHouse's text becomes a number of the same digits. */
export const sumNames: ReadonlySet<string> = new Set([
  ...Object.keys(usageSums),
  'quantity',
  'groups',
  ...Object.keys(outcomeRow.properties).filter((name) => /^(?:status_|bytes_|broken)/.test(name)),
])

const answerHeaders = {
  headers: {
    ETag: text('for pages, once everything until `to` is counted; send it as `If-None-Match`'),
    'Weir-Gaps': whole('for streams: number of gaps, at most 100'),
    'Weir-Complete-Through': text('for streams: as `complete_through`; absent: unknown yet'),
    'Weir-Silent': whole('for streams: number of silent journals'),
  },
}
const streams = Object.fromEntries(
  Object.values(streamTypes).map((type) => [type.split(';')[0] ?? type, { type: 'string' }]),
)

const rowsOf = <Row extends TSchema>(row: Row) =>
  object({
    from: text('RFC 3339; rounded down to the start of its bucket'),
    to: text('RFC 3339; rounded up to the end of its bucket'),
    step: text('hour, day, …'),
    time_zone: text('time zone of the steps'),
    source: text('the table that the rows are summed from'),
    ...completeness,
    gaps,
    cut_off: flag('whether there are more rows than on this page'),
    next,
    rows: list(row),
    previous: optional(object({ from: text('RFC 3339'), to: text('RFC 3339') }, 'with `compare`')),
  })
const usage = object({
  ...rowsOf(usageRow).properties,
  totals: object({ ...usageSums, ...compared }, 'sums over all rows of all pages'),
})
const unitUsage = object({
  ...rowsOf(unitRow).properties,
  totals: optional(
    object({ ...unitSums, ...comparedUnits }, 'sums over all rows of all pages; absent with several units'),
  ),
  currency: optional(text('of one unit that a rate card makes: ISO 4217; quantities are then billionths of it')),
})
const outcomes = rowsOf(outcomeRow)
/** A page of usage. */
export type Usage = Of<typeof usage>
/** A page of usage by unit. */
export type UnitUsage = Of<typeof unitUsage>
/** A page of outcomes. */
export type Outcomes = Of<typeof outcomes>

const notModified = noBody('Unchanged since the ETag in `If-None-Match`')
const asked = { tag, scope: 'usage', reach: 'own', isParsed: true, problems: [422, 429, 503, 504] } as const

/** Who used what, when. */
export const getUsage = operation('GET /v1/usage', {
  ...asked,
  summary: 'Get usage sums',
  query: usageParameters,
  answers: {
    200: media('Usage', { ...streams, 'application/json': Type.Union([usage, unitUsage]) }, answerHeaders),
    304: notModified,
  },
})
/** How upstreams answered, and how fast. */
export const getOutcomes = operation('GET /v1/outcomes', {
  ...asked,
  summary: 'Get statuses, latencies and bytes of upstream responses',
  query: outcomeParameters,
  answers: { 200: media('Outcomes', { ...streams, 'application/json': outcomes }, answerHeaders), 304: notModified },
})

/** The values of a column of usage, for those who fill in a filter. */
export const listValues = operation('GET /v1/dimensions/:name', {
  tag,
  scope: 'usage',
  reach: 'own',
  summary: 'List the values of a usage column, most frequent first',
  params: { name: text(`${usageDimensions.join(', ')}, or a column of usage by unit`) },
  query: {
    prefix: optional(text('only values that start with this', { maxLength: 512 })),
    subject: optional(texts('only values of these subjects', { maxItems: 100 })),
    within: optional(texts('only values of these subjects and all that were below one of them', { maxItems: 100 })),
    from: optional(time('as in /v1/usage; default: 24 hours before `to`')),
    to: optional(time('as `from`; default: now')),
    time_zone: optional(text('time zone of dates; default: UTC')),
    after: optional(text('`next` from the previous page')),
  },
  answers: {
    200: answer(
      'A page of values',
      object({
        from: text('RFC 3339, widened'),
        to: text('RFC 3339, widened'),
        source: text('the table queried'),
        ...completeness,
        ...page(
          object({
            value: text('as in filters'),
            count: Type.Unsafe<string>({ type: 'integer', description: 'decisions, or records of units' }),
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
