import { unitPattern } from '@weir/core/limits/limit.ts'
import type { TProperties } from 'typebox'
import { described, flag, list, momentPattern, oneOf, optional, pageQuery, text, time, whole } from '../schema.ts'
import { Type } from '../type.ts'
import { answerFormats } from './answer-form.ts'
import {
  decisionDimensions,
  orders,
  outcomeDimensions,
  querySteps,
  unitDimensions,
  unitOrders,
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
      [name, filterValues('only rows with this value; repeat to match any of several values')],
      [`not_${name}`, filterValues('only rows without this value; repeat to exclude several')],
    ]),
  )
/** The parameter that names subjects by their beginning. */
const subjectPrefix = optional(text('only subjects that start with this', { maxLength: 512 }))
/** The parameter that names trees of subjects. */
const within = filterValues('only these subjects and all that were below one of them; repeat for several')
/** The cursor of a query. */
export const after = optional(text('`next` from the previous page; keep all other parameters'))
/** The zone of a query. */
const zone = optional(text('time zone of dates: an IANA name', { default: 'UTC' }))
/** The parameters of a time span, which is so long without them. */
const spanQuery = (length: string, toMore = '') => ({
  from: optional(
    time(
      `start, inclusive: \`2026-01-31T14:00:00Z\`, \`2026-01-31\` (midnight in \`time_zone\`), \`now\` or \`now-24h\` (units \`m\`, \`h\`, \`d\` of 24 hours; at most 9999); default: ${length} before \`to\``,
    ),
  ),
  to: optional(time(`end, exclusive, as \`from\`; default: now${toMore}`)),
})

const orderQuery = (names: readonly string[], more = '') =>
  optional(
    oneOf(
      names.flatMap((name) => [name, `-${name}`]),
      `sort order within a step; a leading \`-\` puts the largest first. Default: by name, or \`-cost\` with \`top\`. \`change\` needs \`compare\` and sorts by the change in units (rows that had 0 before come last)${more}`,
    ),
  )
const rankingQuery = {
  top: optional(
    whole('only the top N groups of `by`, by `order` over the whole period; default: all', {
      minimum: 1,
      maximum: 1_000,
    }),
  ),
  order: orderQuery(orders),
  compare: optional(
    text(
      'compare with an earlier period of the same length: `previous` (the period just before; whole days and months by calendar), or its start, as in `from`',
      { pattern: `^previous$|${momentPattern}` },
    ),
  ),
  fill: optional(
    oneOf(
      ['zero'],
      '`zero`: every group gets a row for each step (at most 2,000), with zeros if nothing happened and nulls where counting is not complete. Not with `top`, `order`, `compare` or `price`',
    ),
  ),
  other: optional(flag('with `top`: add a row per step that sums the other groups; default: true')),
  price: optional(
    flag('add `amount` and `currency`; requires `by=subject` and whole months for each subject', { default: false }),
  ),
}

const byColumns = (dimensions: readonly string[], more = '', others: readonly string[] = []) =>
  optional(
    text(`up to 4 of ${dimensions.join(', ')}, separated by commas${more}`, {
      pattern: `^((${[...dimensions, ...others].join('|')})(,(${[...dimensions, ...others].join('|')})){0,3})?$`,
    }),
  )

const questionQuery = (dimensions: readonly string[], more: TProperties): TProperties => ({
  ...filterQuery(dimensions),
  subject_prefix: subjectPrefix,
  ...spanQuery('24 hours'),
  period: optional(
    text(
      'instead of `from` and `to`: a billing month for exactly one `subject` (for a customer, its own), in the subject’s time zone and starting at its `anchor`, as for quotas: `2026-11` (begins in November), `current` or `previous`',
      { pattern: '^(\\d{4}-(0[1-9]|1[0-2])|current|previous)$' },
    ),
  ),
  by: byColumns(dimensions),
  time_zone: optional(
    text(
      'time zone of dates, days, weeks and months: an IANA name in any case, not an offset; default: UTC, or the subject’s own with `period`',
    ),
  ),
  ...more,
  numbers: optional(
    text('`text`: sums as text instead of numbers, for clients that round numbers above 2^53', {
      enum: ['json', 'text'],
      default: 'json',
    }),
  ),
  format: optional(
    oneOf(answerFormats, 'formats other than `json` are streamed without pages; default: from `Accept`, else `json`'),
  ),
  csv: optional(
    oneOf(
      ['safe', 'exact'],
      'with `format=csv`: `safe` (the default) escapes text that a spreadsheet would run as a formula, `exact` does not',
    ),
  ),
  limit: optional(whole('rows per page', { minimum: 1, maximum: 10_000, default: 1_000 })),
  after,
})
const steps = (known: readonly string[]) =>
  optional(
    Type.Unsafe<string>({
      type: 'string',
      enum: known,
      default: 'hour',
      description:
        'time span of a row; weeks begin on Monday; `minute`: usage only, up to 35 days back and 7 days per request',
    }),
  )

/** The name of a label in a query: `dimension.NAME`. */
export const labelPattern = 'dimension\\.[A-Za-z0-9][A-Za-z0-9._-]{0,63}'
/** Units of one query. */
export const unitsMax = 16
const unit = optional(
  list(
    Type.String({ pattern: unitPattern }),
    'sum the quantities of this unit, such as `tokens`, instead of costs and decisions; repeat for several',
    { minItems: 1, maxItems: unitsMax },
  ),
)
const newOfUnits = unitDimensions.filter((name) => !usageDimensions.some((one) => one === name))

/** The parameters of usage without `unit`. */
export const costParameters = questionQuery(usageDimensions, { unit, within, step: steps(querySteps), ...rankingQuery })
/** All parameters of usage; some of them need `unit`, and others go without it. */
export const usageParameters = {
  ...costParameters,
  ...filterQuery(newOfUnits.filter((name) => name !== 'unit')),
  order: orderQuery([...orders, 'quantity'], '. With `unit`: `quantity` (the default with `top`), `count` or `change`'),
  by: byColumns(usageDimensions, `; with \`unit\`: of ${unitDimensions.join(', ')}, \`dimension.NAME\``, [
    ...newOfUnits,
    labelPattern,
  ]),
}
const withoutMinutes = steps(querySteps.filter((one) => one !== 'minute'))
/** The parameters of usage by unit, whose labels have these names. */
export function unitParameters(labels: readonly string[]): TProperties {
  const { price: _, ...ranking } = rankingQuery
  const columns = [...unitDimensions.filter((name) => name !== 'unit'), ...labels]
  return questionQuery(columns, { unit, within, step: withoutMinutes, ...ranking, order: orderQuery(unitOrders) })
}
/** The parameters of outcomes, of which there are no minutes. */
export const outcomeParameters = questionQuery(outcomeDimensions, { step: withoutMinutes })

const decisionFilters = {
  ...filterQuery(decisionDimensions),
  subject_prefix: subjectPrefix,
  min_cost: optional(whole('only requests that cost at least this many units', { minimum: 0, maximum: 1e15 - 1 })),
}
/** The parameters of a list of decisions. */
export const decisionParameters = {
  ...decisionFilters,
  status: optional(
    list(
      Type.Integer({ minimum: 100, maximum: 999 }),
      'only decisions with this upstream status, or with one where several share a record; repeat for any of several',
      { maxItems: 100 },
    ),
  ),
  corrected: optional(flag('only decisions whose cost was corrected later', { default: false })),
  unsettled: optional(flag('only decisions that hold units and were not settled', { default: false })),
  ...spanQuery('an hour', '. At most 24 hours after `from`, or 31 days with `subject`, `key_id` or `ip`'),
  time_zone: zone,
  limit: optional(pageQuery.limit),
  after,
}
/** The parameters of a stream of decisions. */
export const streamParameters = {
  ...decisionFilters,
  of: optional(oneOf(['sums'], '`sums`: only sums; default: decisions as well')),
}

const share = (description: string) => Type.Number({ minimum: 0, description: `${description}, such as 0.8 for 80%` })
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
      description: 'sort order; a leading `-` puts the largest first; ties are sorted by subject and limit',
    }),
  ),
  numbers: optional(text('`text`: counts as text', { enum: ['json', 'text'], default: 'json' })),
  limit: optional(described(pageQuery.limit, 'rows per page; to filter by limit, use `met_limit`')),
  after,
}
