import { rawDimensions, rollupDimensions, type UsageDimension } from '@weir/api/query/columns.ts'
import type { OutcomeQuery, RollupQuery, UsageQuery } from '@weir/api/query/usage-query.ts'
import type { OutcomeRow, UsageRow as ShownUsageRow } from '@weir/api/usage.ts'
import { type ClickHouseClient, readRows } from '@weir/clickhouse/connect.ts'
import { pageMsMax, questionBounds, throwBound } from '@weir/clickhouse/question-bounds.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { isOfSpan, type PagePosition, type RollupSource, rollupSql } from './rollup-sql.ts'

export type { PagePosition, RollupSource } from './rollup-sql.ts'

/** A page, and how long its question may take. */
export type BoundPosition = PagePosition & { readonly msMax?: number }

/** The rows of an answer for which no page was asked. */
export const wholeAnswer: PagePosition = { rowsMax: 10_000 }

/**
 * Reads the rows of an answer, their times in ISO 8601 with the zone's offset. Rejects with ClickHouse's error, and
 * with a QuestionBoundMet for what asks too much.
 */
export async function askRows<Row extends object>(
  client: ClickHouseClient,
  source: RollupSource,
  reach: Reach,
  question: RollupQuery<string>,
  { msMax = pageMsMax, ...position }: BoundPosition,
): Promise<Row[]> {
  const { query, params } = rollupSql(source, reach, question, position)
  const bounds = { clickhouse_settings: questionBounds(msMax) }
  return readRows<Row>(client, query, params, bounds).catch(throwBound)
}

type SumName = 'count' | 'allowed' | 'denied' | 'cost'

/**
 * A row before it is shown: sums of an earlier span stand beside the others. Where steps are filled, and not all of a
 * row's is counted, all four sums of a row of nothing are null.
 */
export type UsageRow = Omit<ShownUsageRow, 'previous' | 'amount' | 'currency'> &
  Readonly<Partial<Record<`previous_${SumName}`, string>>>

/** The sums of the rows that `of` meets. */
const sumsOf = (of: string, { units, count }: RowSums) => ({
  count: `sumIf(${count}, ${of})`,
  allowed: `sumIf(${count}, u.outcome = 'allow' AND ${of})`,
  denied: `sumIf(${count}, u.outcome = 'deny' AND ${of})`,
  cost: `sumIf(${units}, u.outcome = 'allow' AND ${of})`,
})

/** Units of a row, in 128 bits, as over years and all subjects 64 might not do, and its decisions. */
type RowSums = Readonly<Record<'units' | 'count', string>>
const ofRollups: RowSums = { units: 'toInt128(u.cost)', count: 'u.count' }
const ofRecords: RowSums = {
  units: 'toInt128(u.cost) * u.count + u.adjustment',
  count: 'toInt64(u.count) + u.count_adjustment',
}

/** Sums of the rows that `of` meets, with a comparison those of both of its spans. */
export function comparedSums(
  { comparison }: RollupQuery<string>,
  of: (met: string) => RollupSource['sums'],
): Pick<RollupSource, 'sums' | 'derived'> {
  if (comparison === undefined) return { sums: of('true') }
  const earlier = Object.entries(of(`NOT (${isOfSpan})`)).map(([name, sql]) => [`previous_${name}`, sql])
  const { measure } = comparison
  return {
    sums: { ...of(isOfSpan), ...Object.fromEntries(earlier) },
    derived(sums) {
      const [value, before] = [measure, `previous_${measure}`].map((name) => `toInt128(${sums[name]})`)
      // Adding 0 makes a -0 a 0.
      const change = `round(toFloat64(${value} - ${before}) / toFloat64(abs(${before})), 4) + 0`
      return { change: `if(${before} = 0, NULL, ${change})` }
    },
  }
}

const usageSums = (question: UsageQuery, of = ofRollups) => comparedSums(question, (met) => sumsOf(met, of))

const noId = "toUUID('00000000-0000-0000-0000-000000000000')"

/**
 * The decisions themselves. Corrections have subject, key and time of the decision that they correct; what else no
 * rollup has of it is looked up, so that its units are corrected where they were counted.
 */
function rawSource(question: UsageQuery): RollupSource {
  const named = (['subject', 'key_id'] as const).filter((name) => name in question.only)
  const narrowed = named.map((name) => `AND u.${name} IN {only_${name}:Array(String)}`).join(' ')
  const own = ['ts', ...rollupDimensions, 'parents', 'cost', 'count', 'adjustment', 'count_adjustment']
  const corrected = Object.entries({ reason: 'reason', mode: 'mode', ip: 'ip', met_limits: 'limits.name' })
  return {
    table: 'decisions',
    bucketMs: question.step === 'minute' ? 60_000 : 900_000,
    parents: 'u.parents',
    ...usageSums(question, ofRecords),
    rowsWithin: (within) => `
      SELECT ${own.map((name) => `u.${name} AS ${name}`).join(', ')},
        ${corrected.map(([name, column]) => `if(c.id = ${noId}, u.${column}, c.${name}) AS ${name}`).join(', ')}
      FROM decisions AS u LEFT ANY JOIN (
        SELECT u.subject AS subject, u.id AS id, ${corrected.map(([name, column]) => `u.${column} AS ${name}`).join(', ')}
        FROM decisions AS u WHERE ${within} ${narrowed} AND u.count > 0 AND (u.subject, u.id) IN (
          SELECT u.subject, u.corrects FROM decisions AS u WHERE ${within} ${narrowed} AND u.count = 0)
      ) AS c ON c.subject = u.subject AND c.id = u.corrects
      WHERE ${within} ${narrowed}`,
  }
}

/** The smallest table that can answer. Times are cut to its buckets: minutes for step `minute`, else quarter hours. */
export function usageSource({ isOwn }: Reach, question: UsageQuery): RollupSource {
  const { step, by, only, except, subjectPrefix, within } = question
  const named = [...by, ...Object.keys(only), ...Object.keys(except)]
  if (rawDimensions.some((name) => named.includes(name))) return rawSource(question)
  if (step === 'minute') return { table: 'usage_1m', bucketMs: 60_000, parents: 'u.parents', ...usageSums(question) }
  const isOfSome = isOwn || subjectPrefix !== undefined || within !== undefined
  const isTotal = !isOfSome && ['subject', 'key_id', 'parent', 'parents'].every((name) => !named.includes(name))
  if (isTotal) return { table: 'usage_total_15m', bucketMs: 900_000, ...usageSums(question) }
  return { table: 'usage_15m', bucketMs: 900_000, parents: 'u.parents', ...usageSums(question) }
}

/** Answers from the rollups; rejects with ClickHouse's error. */
export const askUsage = (
  client: ClickHouseClient,
  reach: Reach,
  question: UsageQuery,
  position: BoundPosition = wholeAnswer,
): Promise<UsageRow[]> => askRows(client, usageSource(reach, question), reach, question, position)

/** What the rows of an answer add up to, over all groups and steps. */
export type UsageTotals = Omit<UsageRow, UsageDimension | 'ts' | 'other' | 'groups'>

/** Sums everything that a question asks for, from the smallest rollup that can; rejects with ClickHouse's error. */
export async function askUsageTotals(
  client: ClickHouseClient,
  reach: Reach,
  question: UsageQuery,
): Promise<UsageTotals> {
  const total = { ...question, by: [], step: 'total' as const, ranking: undefined }
  // Minutes are cut to minutes, all else to quarter hours.
  const source = usageSource(reach, question.step === 'minute' ? question : total)
  const [row] = await askRows<UsageTotals>(client, source, reach, total, { rowsMax: 1 })
  return row ?? { count: '0', allowed: '0', denied: '0', cost: '0' }
}

const summed = ['status_1xx', 'status_2xx', 'status_3xx', 'status_4xx', 'status_5xx', 'broken', 'bytes_in', 'bytes_out']

/** Of no answers the quantile is not a number: null. */
function quantile(index: number): string {
  const value = `quantilesTDigestMerge(0.5, 0.9, 0.99)(u.duration_ms)[${index}]`
  return `if(isNaN(${value}), NULL, round(${value}, 3))`
}

/** The table that answers questions about outcomes. */
export const outcomeSource = {
  table: 'outcomes_15m',
  bucketMs: 900_000,
  sums: {
    count: 'sum(u.count)',
    ...Object.fromEntries(summed.map((name) => [name, `sum(u.${name})`])),
    ...Object.fromEntries(['p50_ms', 'p90_ms', 'p99_ms'].map((name, index) => [name, quantile(index + 1)])),
  },
}

/** Answers from the rollup, by whole quarter hours; rejects with ClickHouse's error. */
export const askOutcomes = (
  client: ClickHouseClient,
  reach: Reach,
  question: OutcomeQuery,
  position = wholeAnswer,
): Promise<OutcomeRow[]> => askRows(client, outcomeSource, reach, question, position)
