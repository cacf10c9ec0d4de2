import type { QuotaUse, SummableQuota } from '@weir/core/audit/quota.ts'
import { refuses } from '@weir/core/limits/exceeding.ts'
import type { PeriodUnit, ScopePart } from '@weir/core/limits/limit.ts'
import { type ClickHouseClient, readRows } from '../connect.ts'

const hourMs = 3_600_000

/** The longest that such a period lasts, with an hour for clocks that disagree. */
const longestMs: Readonly<Record<PeriodUnit, number>> = {
  minute: 60_000 + hourMs,
  hour: 2 * hourMs,
  day: 26 * hourMs, // clocks are set back by an hour once a year
  week: 7 * 24 * hourMs + 2 * hourMs,
  month: 31 * 24 * hourMs + 2 * hourMs,
}

/** Columns that hold a scope's parts. Every row has the subject. */
const columns = { key: 'key_id', route: 'route', method: 'method' } as const

const columnOf = ({ kind }: ScopePart) =>
  kind === 'key' || kind === 'route' || kind === 'method' ? columns[kind] : undefined

/** The columns that a quota's scope consists of, beyond the subject. */
const columnsOf = ({ limit }: SummableQuota) =>
  [...new Set(limit.by.map(columnOf).filter((column) => column !== undefined))].sort()

/** Quotas that one query can sum: of one period's length, counted by the same columns. */
const groupsOf = (quotas: readonly SummableQuota[]) =>
  Map.groupBy(quotas, (quota) => `${quota.unit} ${columnsOf(quota).join(' ')}`).values()

interface UseRow {
  readonly limit: string
  readonly subject: string
  readonly key_id: string
  readonly route: string
  readonly method: string
  readonly end_s: string
  readonly units: string
}

/**
 * `reset_ms` of a row tells when the period ends that it was charged in, as Redis saw it. Periods end at quarter hours,
 * in every time zone, so clocks that differ by minutes change nothing. A limit in shadow, or one that degrades, is not
 * charged by a request beyond its capacity; where the record names another limit, it may have been charged, and is left
 * out.
 */
function usesQuery(named: readonly string[], whose: string): string {
  const texts = Object.values(columns).map((column) => `${named.includes(column) ? `d.${column}` : "''"} AS ${column}`)
  return `SELECT toString(l.name) AS limit, d.subject AS subject, ${texts.join(', ')},
      toString(toUnixTimestamp(toStartOfFifteenMinutes(d.ts + toIntervalMillisecond(l.reset_ms + 450000)))) AS end_s,
      toString(sumIf(toInt128(d.cost * d.count), d.outcome = 'allow' AND d.charged = 'yes') + sum(toInt128(d.adjustment))) AS units
    FROM decisions AS d ARRAY JOIN d.limits AS l
    WHERE d.ts >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') ${whose}
      AND l.name IN {names:Array(String)} AND NOT (d.outcome = 'allow' AND d.reason = 'limit' AND l.name IN {passing:Array(String)})
    GROUP BY limit, subject, key_id, route, method, end_s
    HAVING toUInt64(end_s) * 1000 > {now:Int64} AND toInt128(units) > 0`
}

const useOf = ({ key_id: keyId, end_s: endS, units, ...row }: UseRow): QuotaUse => ({
  ...row,
  keyId,
  endMs: Number(endS) * 1_000,
  units: Number(units),
})

/**
 * Reads the units that decisions are known to have charged to calendar quotas in the periods that run at `nowMs`: of
 * every subject that was active in them, or of one. Units that may have been charged (`charged: unknown`) are left out,
 * so each is a floor.
 */
export async function askQuotaUses(
  client: ClickHouseClient,
  quotas: readonly SummableQuota[],
  nowMs: number,
  subject?: string,
): Promise<QuotaUse[]> {
  const uses: QuotaUse[] = []
  for (const group of groupsOf(quotas)) {
    const [first] = group
    if (first === undefined) continue
    const passing = group.filter(({ limit }) => !refuses(limit))
    const query = usesQuery(columnsOf(first), subject === undefined ? '' : 'AND d.subject = {subject:String}')
    const rows = await readRows<UseRow>(client, query, {
      from: nowMs - longestMs[first.unit],
      now: nowMs,
      names: group.map(({ limit }) => limit.name),
      passing: passing.map(({ limit }) => limit.name),
      ...(subject === undefined ? {} : { subject }),
    })
    for (const row of rows) uses.push(useOf(row))
  }
  return uses
}

/** Reads the units of each subject since a time that Redis may or may not have counted. */
export async function askUnknownUnits(client: ClickHouseClient, fromMs: number): Promise<ReadonlyMap<string, number>> {
  const rows = await readRows<{ subject: string; units: string }>(
    client,
    `SELECT subject, toString(sum(toUInt128(cost * count))) AS units FROM decisions
      WHERE charged = 'unknown' AND ts >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') GROUP BY subject`,
    { from: fromMs },
  )
  return new Map(rows.map(({ subject, units }) => [subject, Number(units)]))
}
