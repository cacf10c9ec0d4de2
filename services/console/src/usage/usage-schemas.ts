import type { Gap } from '@weir/clickhouse/mark-queries.ts'
import { answerFormats } from '@weir/core/usage/answer-form.ts'
import type { Completeness } from '@weir/core/usage/complete-through.ts'
import { orders } from '@weir/core/usage/ranking.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { querySteps, usageDimensions } from '@weir/core/usage/usage-query.ts'
import { object, text, textOrNull } from '../http/schemas.ts'
import { streamTypes } from './stream-answer.ts'

const [day, clock] = ['\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])', '([01]\\d|2[0-3]):[0-5]\\d']
const momentPattern = `^(now(-\\d{1,4}[mhd])?|${day}(T${clock}(:[0-5]\\d(\\.\\d{1,3})?)?(Z|[+-]${clock}))?)$`
/** A time as `from` has it. For descriptions: handlers word what is wrong better than a pattern. */
export const time = (description: string) => ({ type: 'string', pattern: momentPattern, description })
const values = (description: string) => ({
  type: 'array',
  minItems: 1,
  maxItems: 100,
  items: { type: 'string', maxLength: 512 },
  description,
})

/** The filters of a question by column. */
export const filterQuery = (dimensions: readonly string[]) =>
  Object.fromEntries(
    dimensions.flatMap((name) => [
      [name, values('only rows with this value; several times: with any of them')],
      [`not_${name}`, values('only rows without this value; several times: without any of them')],
    ]),
  )

/** Parameters that only usage has. */
const rankingQuery = {
  top: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000,
    description: 'only so many groups of `by`, those that `order` puts first over the whole span',
  },
  order: {
    type: 'string',
    enum: orders.flatMap((name) => [name, `-${name}`]),
    description:
      'what rows are sorted by within a step; with - the largest first. `-cost` with `top`; `change`: with `compare`',
  },
  compare: {
    type: 'string',
    pattern: `^previous$|${momentPattern}`,
    description:
      '`previous`: with the span before, of the same length, by the calendar for whole days and months; or a time as in `from`: with one that begins then',
  },
  fill: {
    type: 'string',
    enum: ['zero'],
    description: 'every group has a row of each step: of zeros, of nulls where not all is counted yet',
  },
  other: { type: 'boolean', description: 'with `top`: whether one row sums the other groups; true if absent' },
  price: {
    type: 'boolean',
    default: false,
    description: 'rows get `amount` and `currency`: with `by=subject`, over whole months of each subject',
  },
}

/**
 * The parameters of a question, for readers. Requests are judged by the question's own parser, which reports everything
 * that is wrong in one answer.
 */
export const questionQuery = (dimensions: readonly string[], isUsage: boolean) => ({
  type: 'object',
  properties: {
    ...filterQuery(dimensions),
    subject_prefix: { type: 'string', maxLength: 512, description: 'only subjects that begin so' },
    from: time('RFC 3339, a date, which begins in `time_zone`, `now` or `now-24h`; 24 hours before `to` if absent'),
    to: time('the same; now if absent'),
    period: {
      type: 'string',
      pattern: '^(\\d{4}-(0[1-9]|1[0-2])|current|previous)$',
      description: 'instead of both, with one `subject`: its month, 2026-11, `current` or `previous`',
    },
    by: {
      type: 'string',
      pattern: `^((${dimensions.join('|')})(,(${dimensions.join('|')})){0,3})?$`,
      description: `up to 4 of ${dimensions.join(', ')}, separated by commas`,
    },
    step: { type: 'string', enum: querySteps.filter((one) => isUsage || one !== 'minute'), default: 'hour' },
    time_zone: { type: 'string', description: 'IANA; UTC if absent, with `period` the subject’s own' },
    ...(isUsage ? rankingQuery : {}),
    numbers: {
      type: 'string',
      enum: ['json', 'text'],
      default: 'json',
      description: '`text`: sums as text instead of numbers, for readers whose numbers end at 2^53',
    },
    format: {
      type: 'string',
      enum: answerFormats,
      description: 'all but `json` come whole, as a stream; that of `Accept` if absent, else `json`',
    },
    csv: {
      type: 'string',
      enum: ['safe', 'exact'],
      description: "with `format=csv`; `exact`: no ' before texts that a spreadsheet takes for formulas",
    },
    limit: { type: 'integer', minimum: 1, maximum: 10_000, default: 1_000, description: 'rows of a page' },
    after: { type: 'string', description: '`next` of the page before, with the same question' },
  },
})

/** How far an answer is complete. */
export const completeness = {
  complete_through: textOrNull(
    'all before it is counted, but for what silent journals hold; null: nothing is known yet',
  ),
  silent: {
    type: 'array',
    description: 'journals that have said nothing for a minute while others did; what they hold is counted later',
    items: object(
      { journal: text('process start; absent for callers limited to subjects'), since: text('its last mark') },
      ['journal'],
    ),
  },
}

/** What is missing of an answer. */
export const gaps = {
  type: 'array',
  description: 'what is missing for good and may be of this time, the last noticed first, at most 100',
  items: object(
    {
      cause: text('as in weir.gaps'),
      partition: { type: 'integer' },
      count: { type: ['integer', 'string'], description: 'decisions or records' },
      from: textOrNull('RFC 3339; null: not known'),
      to: textOrNull('RFC 3339; null: not known'),
    },
    ['partition', 'count'],
  ),
}

/** The gaps of an answer, as the caller may know them: how many decisions of all subjects are missing is hidden. */
export const shownGaps = (found: readonly Gap[], { isOwn }: Reach) =>
  found.map(({ cause, partition, count, fromMs, toMs }) => ({
    ...(isOwn ? { cause } : { cause, partition, count }),
    from: fromMs === 0 ? null : new Date(fromMs).toISOString(),
    to: toMs === 0 ? null : new Date(toMs).toISOString(),
  }))

/** The silent journals of an answer, as the caller may know them. */
export const shownSilent = (silent: Completeness['silent'], { isOwn }: Reach) =>
  silent.map(({ journal, sinceMs }) => ({ ...(isOwn ? {} : { journal }), since: new Date(sinceMs).toISOString() }))

/** The answer to a question whose rows look like this. */
export const questionAnswer = (description: string, row: object, more: Readonly<Record<string, object>> = {}) => ({
  description,
  headers: {
    ETag: { type: 'string', description: 'of pages, where all until `to` is counted; send it as `If-None-Match`' },
    'Weir-Gaps': { type: 'integer', description: 'of streams: how many gaps there are, at most 100' },
    'Weir-Complete-Through': text('of streams: as `complete_through`; absent: nothing is known yet'),
    'Weir-Silent': { type: 'integer', description: 'of streams: how many journals are silent' },
  },
  content: {
    ...Object.fromEntries(
      Object.values(streamTypes).map((type) => [type.split(';')[0], { schema: { type: 'string' } }]),
    ),
    'application/json': {
      schema: object(
        {
          from: text('RFC 3339; cut to the start of the bucket that it is in'),
          to: text('RFC 3339; moved to the end of the bucket that it is in'),
          step: text('hour, day, …'),
          time_zone: text('of the steps'),
          source: text('the table that the rows are sums of'),
          ...completeness,
          gaps,
          cut_off: { type: 'boolean', description: 'whether there are more rows than this page has' },
          next: textOrNull('`after` of the next page; null on the last'),
          rows: { type: 'array', items: row },
          previous: { ...object({ from: text('RFC 3339'), to: text('RFC 3339') }), description: 'with `compare`' },
          ...more,
        },
        ['previous'],
      ),
    },
  },
})

const named = text('where `by` names it')
const ts = text('start of the step, with the offset of its zone; absent for `total`')
/** Every digit stands there, also beyond 2^53, where many readers round. */
const sum = (description: string) => ({
  type: ['integer', 'string', 'null'],
  description: `${description}; text if so asked; null with \`fill\` where it is not counted yet`,
})
const answers = sum('answers')
const quantile = (share: string) => ({
  type: ['number', 'null'],
  description: `milliseconds that ${share} of the answers took at most, within about a hundredth; null: there were none`,
})

const usageSums = {
  count: sum('decisions'),
  allowed: sum('decisions'),
  denied: sum('decisions'),
  cost: sum('units that the allowed ones used, corrections included'),
}
const usageNames = {
  ts,
  ...Object.fromEntries(usageDimensions.map((name) => [name, named])),
  other: { type: 'boolean', description: 'true in the row that sums the groups beyond `top`; absent in all others' },
  groups: sum('groups that the other row sums; absent in all others'),
  amount: { ...textOrNull('with `price=true`: decimal; null without a price list') },
  currency: { ...textOrNull('with `price=true`: ISO 4217') },
}
/** What a sum of usage has with `compare`. */
const compared = {
  previous: { ...object(usageSums), description: 'the same of the earlier span; with `compare`' },
  change: {
    type: ['number', 'null'],
    description: 'of the sum in `order`, from then to now: 0.12 is 12 % more; null from 0; with `compare`',
  },
}
/** A row of usage. */
export const usageRow = object({ ...usageNames, ...usageSums, ...compared }, [
  ...Object.keys(usageNames),
  ...Object.keys(compared),
])
/** What an answer about usage has beyond its rows. */
export const usageTotals = {
  totals: {
    ...object({ ...usageSums, ...compared }, Object.keys(compared)),
    description: 'all rows of all pages, summed by themselves',
  },
}

const outcomeNames = { ts, subject: named, route: named, method: named }
/** A row of outcomes. */
export const outcomeRow = object(
  {
    ...outcomeNames,
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
    p90_ms: quantile('90 %'),
    p99_ms: quantile('99 %'),
  },
  Object.keys(outcomeNames),
)

/** The columns of both whose values are sums: ClickHouse's text becomes a number of the same digits. */
export const sumNames: ReadonlySet<string> = new Set([
  'count',
  'allowed',
  'denied',
  'cost',
  'groups',
  'broken',
  'bytes_in',
  'bytes_out',
  'status_1xx',
  'status_2xx',
  'status_3xx',
  'status_4xx',
  'status_5xx',
])
