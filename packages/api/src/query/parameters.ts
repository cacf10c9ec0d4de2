import type { TProperties } from 'typebox'
import { described, flag, list, momentPattern, oneOf, optional, pageQuery, text, time, whole } from '../schema.ts'
import { Type } from '../type.ts'
import { answerFormats } from './answer-form.ts'
import {
  decisionDimensions,
  orders,
  outcomeDimensions,
  querySteps,
  usageDimensions,
  utilizationFilters,
  utilizationOrders,
} from './columns.ts'

/*
 * The parameters of questions, which are OpenAPI's and the documents' too. What they may be together is in the readers
 * beside this file.
 */

const filterValues = (description: string) =>
  optional(list(Type.String({ maxLength: 512 }), description, { minItems: 1, maxItems: 100 }))
/** The filters of a query by column. */
const filterQuery = (dimensions: readonly string[]) =>
  Object.fromEntries(
    dimensions.flatMap((name) => [
      [name, filterValues('only rows with this value; several times: with any of them')],
      [`not_${name}`, filterValues('only rows without this value; several times: without any of them')],
    ]),
  )
/** The parameter that names subjects by their beginning. */
const subjectPrefix = optional(text('only subjects that begin so', { maxLength: 512 }))
/** The cursor of a query. */
export const after = optional(text('`next` of the page before, with the same question'))
/** The zone of a query. */
const zone = optional(text('where dates begin: an IANA name', { default: 'UTC' }))
/** The parameters of a time span, which is so long without them. */
const spanQuery = (length: string, toMore = '') => ({
  from: optional(
    time(
      `first instant that counts: \`2026-01-31T14:00:00Z\`, \`2026-01-31\`, which begins in \`time_zone\`, \`now\`, or \`now-24h\` (\`m\`, \`h\`, \`d\` of 24 hours; at most 9999); ${length} before \`to\` if absent`,
    ),
  ),
  to: optional(time(`the first that does not count, as \`from\`; now if absent${toMore}`)),
})

const rankingQuery = {
  top: optional(
    whole(
      'only so many groups of `by`, those that `order` puts first over the whole span, then their steps; all if absent',
      { minimum: 1, maximum: 1_000 },
    ),
  ),
  order: optional(
    oneOf(
      orders.flatMap((name) => [name, `-${name}`]),
      'what the rows of a step are sorted by; with `-` before it the largest first. By name if absent, `-cost` with `top`; `change` (of units, one from 0 comes last): with `compare`',
    ),
  ),
  compare: optional(
    text(
      '`previous`: with the span before, of the same length, by the calendar for whole days and months; or a time as in `from`: with one that begins then',
      { pattern: `^previous$|${momentPattern}` },
    ),
  ),
  fill: optional(
    oneOf(
      ['zero'],
      'without `top`, `order`, `compare` and `price`: `zero` gives every group a row of each step (at most 2,000), of zeros where there was nothing, of nulls where not all is counted yet',
    ),
  ),
  other: optional(flag('with `top`: whether one row sums the other groups of each step; true if absent')),
  price: optional(
    flag('rows get `amount` and `currency`: with `by=subject`, over whole months of each subject', { default: false }),
  ),
}

const questionQuery = (dimensions: readonly string[], more: TProperties): TProperties => ({
  ...filterQuery(dimensions),
  subject_prefix: subjectPrefix,
  ...spanQuery('24 hours'),
  period: optional(
    text(
      'instead of `from` and `to`, of exactly one `subject` (a customer’s own if it asks itself): its month in its own zone and from its `anchor` on, as quotas have it: `2026-11` (the one that begins in November), `current`, `previous`',
      { pattern: '^(\\d{4}-(0[1-9]|1[0-2])|current|previous)$' },
    ),
  ),
  by: optional(
    text(`up to 4 of ${dimensions.join(', ')}, separated by commas`, {
      pattern: `^((${dimensions.join('|')})(,(${dimensions.join('|')})){0,3})?$`,
    }),
  ),
  time_zone: optional(
    text(
      'where dates, days, weeks and months begin: an IANA name, in any case, no offset; UTC if absent, with `period` the subject’s own',
    ),
  ),
  ...more,
  numbers: optional(
    text('`text`: sums as text instead of numbers, for readers whose numbers end at 2^53', {
      enum: ['json', 'text'],
      default: 'json',
    }),
  ),
  format: optional(
    oneOf(answerFormats, 'all but `json` come whole, as a stream; that of `Accept` if absent, else `json`'),
  ),
  csv: optional(
    oneOf(
      ['safe', 'exact'],
      'with `format=csv`: `exact` leaves texts as they are, `safe` guards those that a spreadsheet would run; `safe` if absent',
    ),
  ),
  limit: optional(whole('rows of a page', { minimum: 1, maximum: 10_000, default: 1_000 })),
  after,
})
const steps = (known: readonly string[]) =>
  optional(
    Type.Unsafe<string>({
      type: 'string',
      enum: known,
      default: 'hour',
      description:
        'length of the rows; weeks begin on Monday; `minute`: usage only, 35 days back, 7 days in one question',
    }),
  )

/** The parameters of usage. */
export const usageParameters = questionQuery(usageDimensions, { step: steps(querySteps), ...rankingQuery })
/** The parameters of outcomes, of which there are no minutes. */
export const outcomeParameters = questionQuery(outcomeDimensions, {
  step: steps(querySteps.filter((one) => one !== 'minute')),
})

const decisionFilters = {
  ...filterQuery(decisionDimensions),
  subject_prefix: subjectPrefix,
  min_cost: optional(whole('only requests that cost at least so many units', { minimum: 0, maximum: 1e15 - 1 })),
}
/** The parameters of a list of decisions. */
export const decisionParameters = {
  ...decisionFilters,
  status: optional(
    list(
      Type.Integer({ minimum: 100, maximum: 999 }),
      'only those whose upstream answered so; several times: with any of them',
      { maxItems: 100 },
    ),
  ),
  corrected: optional(flag('only those whose units were given back or charged later', { default: false })),
  ...spanQuery('an hour', '. At most 24 hours, and 31 days with `subject`, `key_id` or `ip`, since raw rows are read'),
  time_zone: zone,
  limit: optional(pageQuery.limit),
  after,
}
/** The parameters of a stream of decisions. */
export const streamParameters = {
  ...decisionFilters,
  of: optional(oneOf(['sums'], 'only sums; without it decisions come, too')),
}

const share = (description: string) => Type.Number({ minimum: 0, description: `${description}, 0.8 for 80%` })
/** The parameters of utilization. */
export const utilizationParameters = {
  ...filterQuery(utilizationFilters),
  subject_prefix: subjectPrefix,
  ...spanQuery('24 hours'),
  time_zone: zone,
  share_from: optional(share('only rows with at least this share')),
  share_to: optional(share('only rows with less than this share')),
  order: optional(
    Type.Unsafe<string>({
      type: 'string',
      enum: utilizationOrders.flatMap((name) => [name, `-${name}`]),
      default: '-share',
      description: 'what rows are sorted by; with `-` before it the largest first; equal rows by subject and limit',
    }),
  ),
  numbers: optional(text('`text`: counts as text', { enum: ['json', 'text'], default: 'json' })),
  limit: optional(described(pageQuery.limit, 'rows of a page; `met_limit` takes the name of a limit')),
  after,
}
