/** Lengths of the rows of an answer; `total` gives one row for the whole time. */
export const querySteps = ['minute', 'quarter_hour', 'hour', 'day', 'week', 'month', 'total'] as const
/** The length of the rows of an answer. */
export type Step = (typeof querySteps)[number]

/** The columns of the rollups of usage. */
export const rollupDimensions = ['subject', 'key_id', 'plan', 'route', 'method', 'outcome', 'denied_by'] as const
/** What of decisions no rollup has. `met_limit` is each limit that a request met, whether it refused or not. */
export const rawDimensions = ['reason', 'mode', 'ip', 'met_limit'] as const
/** A subject's ancestors: the one right above, empty for none; all, the nearest first, as a JSON list. */
const treeDimensions = ['parent', 'parents'] as const
/** What usage can be broken down by. */
export const usageDimensions = [...rollupDimensions, ...treeDimensions, ...rawDimensions] as const
/** What usage can be broken down by. */
export type UsageDimension = (typeof usageDimensions)[number]

/** What usage by unit can be broken down by, besides `dimension.NAME`; `model` is `dimension.model`. */
export const unitDimensions = [
  'subject',
  'key_id',
  'plan',
  'route',
  ...treeDimensions,
  'unit',
  'basis',
  'meter',
  'model',
] as const

/** The columns of the rollup of outcomes. */
export const outcomeDimensions = ['subject', 'route', 'method'] as const
/** What outcomes can be broken down by; the columns of their rollup. */
export type OutcomeDimension = (typeof outcomeDimensions)[number]

/** The columns of a decision that it can be found by. */
export const decisionDimensions = [...rollupDimensions, 'reason', 'mode', 'ip'] as const
/** A column of a decision that it can be found by. */
export type DecisionDimension = (typeof decisionDimensions)[number]

/** The filters of utilization; `limit` is the rows of a page, here as in every list. */
export const utilizationFilters = ['subject', 'met_limit'] as const
/** The columns that rows of utilization can be sorted by. */
export const utilizationOrders = ['share', 'count', 'refused', 'shadow_refused', 'cost'] as const

/** The sums that groups can be ranked by. */
const measures = ['cost', 'count', 'allowed', 'denied'] as const
/** A sum that groups can be ranked by. */
export type Measure = (typeof measures)[number] | 'quantity'
/** What rows can be sorted by: a sum, or with a comparison the change of units. */
export const orders = [...measures, 'change'] as const
/** What rows of usage by unit can be sorted by. */
export const unitOrders = ['quantity', 'count', 'change'] as const
