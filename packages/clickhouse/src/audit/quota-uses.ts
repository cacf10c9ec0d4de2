import type { ForgottenCount, KnownUnits, QuotaUse, SummableQuota } from '@weir/core/audit/quota.ts'
import { countsBeyond, refuses } from '@weir/core/limits/exceeding.ts'
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

/** Corrections of a month that are held in memory, some million of them; more are joined on disk. */
const joinBytesMax = 256 * 1024 * 1024

/** Columns that hold a scope's parts. Every row has the subject that is counted, and above whom it was at last. */
const columns = { key: 'key_id', route: 'route', method: 'method' } as const

const columnOf = ({ kind }: ScopePart) =>
  kind === 'key' || kind === 'route' || kind === 'method' ? columns[kind] : undefined

/** The columns that a quota's scope consists of, beyond the subject. */
const columnsOf = ({ limit }: SummableQuota) =>
  [...new Set(limit.by.map(columnOf).filter((column) => column !== undefined))].sort()

/** Quotas that one query can sum: of one period's length, counted by the same columns. */
const groupsOf = (quotas: readonly SummableQuota[]) =>
  Map.groupBy(quotas, (quota) => `${quota.unit} ${columnsOf(quota).join(' ')}`).values()

type UseRow = Readonly<Record<'limit' | 'subject' | 'root' | 'key_id' | 'route' | 'method' | 'end_s' | 'units', string>>

/**
 * `reset_ms` of a row tells when the period ends that it was charged in, as Redis saw it. Periods end at quarter
 * hours, in every time zone, so clocks that differ by minutes change nothing. A limit in shadow, or one that degrades,
 * is not charged by a request beyond its capacity; where the record names another limit, it may have been charged, and
 * is left out. What was settled or given back changes the decision's own units, in every limit that it was charged to:
 * its correction bears the decision's time, so both are read from the same span. A decision is corrected once; a
 * second record of that says the same. Only admissions that share a record have a correction each, with an id of its
 * own. Of other units than the cost counts what was used, or is held until that is known.
 */
function usesQuery(named: readonly string[]): string {
  const texts = Object.values(columns).map((column) => `${named.includes(column) ? `d.${column}` : "''"} AS ${column}`)
  return `SELECT toString(l.name) AS limit, if(l.at = '', d.subject, toString(l.at)) AS subject, argMax(toString(d.parents[-1]), d.ts) AS root, ${texts.join(', ')},
      toString(toUnixTimestamp(toStartOfFifteenMinutes(d.ts + toIntervalMillisecond(l.reset_ms + 450000)))) AS end_s,
      transform(limit, {names:Array(String)}, {counted:Array(String)}, '') AS counted,
      toString(sum(multiIf(counted = '', toInt128(d.cost * d.count) + c.adjustment, counted = 'requests', toInt128(d.count - least(d.count, c.freed)) + c.counted_less,
        toInt128(d.units[counted]) + if(notEmpty(c.units), toInt128(c.units[counted]), toInt128(d.held[counted]))))) AS units
    FROM decisions AS d ARRAY JOIN d.limits AS l
    LEFT ANY JOIN (
      SELECT one.corrects AS id, sum(one.adjustment) AS adjustment, sum(one.count_adjustment) AS counted_less, any(one.units) AS units, countIf(one.charged = 'no') AS freed FROM (
        SELECT d.corrects AS corrects, any(d.adjustment) AS adjustment, any(d.count_adjustment) AS count_adjustment, any(d.units) AS units, any(d.charged) AS charged FROM decisions AS d
        WHERE d.ts >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND d.count = 0 AND (d.adjustment != 0 OR d.count_adjustment != 0 OR notEmpty(d.units))
        GROUP BY corrects, d.id
      ) AS one GROUP BY id
    ) AS c ON c.id = d.id
    WHERE d.ts >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND d.count > 0
      AND d.outcome = 'allow' AND d.charged = 'yes' AND l.name IN {names:Array(String)} AND NOT (d.reason = 'limit' AND l.name IN {passing:Array(String)})
    GROUP BY limit, subject, key_id, route, method, end_s
    HAVING toUInt64(end_s) * 1000 > {now:Int64} AND toInt128(units) > 0
    SETTINGS join_algorithm = 'grace_hash', max_bytes_in_join = ${joinBytesMax}`
}

const useOf = ({ key_id: keyId, end_s: endS, units, ...row }: UseRow): QuotaUse => ({
  ...row,
  keyId,
  endMs: Number(endS) * 1_000,
  units: Number(units),
})

/**
 * Reads the units that decisions are known to have charged to calendar quotas in the periods that run at `nowMs`, of
 * every subject that was active in them, and what resets took out of them. Units that may have been charged (`charged:
 * unknown`) are left out, so what they come to is a floor.
 */
export async function askKnownUnits(
  client: ClickHouseClient,
  quotas: readonly SummableQuota[],
  nowMs: number,
): Promise<KnownUnits> {
  const uses: QuotaUse[] = []
  for (const group of groupsOf(quotas)) {
    const [first] = group
    if (first === undefined) continue
    const passing = group.filter(({ limit }) => !refuses(limit) && !countsBeyond(limit))
    const rows = await readRows<UseRow>(client, usesQuery(columnsOf(first)), {
      from: nowMs - longestMs[first.unit],
      now: nowMs,
      names: group.map(({ limit }) => limit.name),
      counted: group.map(({ limit: { unit = '' } }) => unit),
      passing: passing.map(({ limit }) => limit.name),
    })
    for (const row of rows) uses.push(useOf(row))
  }
  // After the uses: a reset meanwhile makes a floor too low, and none too high.
  return { uses, forgotten: await askForgottenCounts(client, nowMs - longestMs.month) }
}

/** Reads the units that resets took out of quotas, from the copy of the audit, which a console makes within seconds. */
async function askForgottenCounts(client: ClickHouseClient, fromMs: number): Promise<ForgottenCount[]> {
  const rows = await readRows<Record<keyof ForgottenCount, string>>(
    client,
    `SELECT DISTINCT h.change, f.count AS count, toString(f.end_ms) AS end_ms, toString(f.units) AS units
     FROM policy_history AS h
     ARRAY JOIN JSONExtractArrayRaw(h.body, 'summary') AS line
     ARRAY JOIN JSONExtract(line, 'forgotten', 'Array(Tuple(count String, end_ms UInt64, units UInt64))') AS f
     WHERE h.kind = 'change' AND h.at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')`,
    { from: fromMs },
  )
  return rows.map(({ count, end_ms: endMs, units }) => ({ count, end_ms: Number(endMs), units: Number(units) }))
}

/** Reads the units of each subject since a time that Redis may or may not have counted. */
export async function askUnknownUnits(client: ClickHouseClient, fromMs: number): Promise<ReadonlyMap<string, number>> {
  const rows = await readRows<{ subject: string; units: string }>(
    client,
    `SELECT arrayJoin(arrayConcat([d.subject], d.parents)) AS subject, toString(sum(toUInt128(d.cost * d.count))) AS units FROM decisions AS d
      WHERE d.charged = 'unknown' AND d.ts >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') GROUP BY subject`,
    { from: fromMs },
  )
  return new Map(rows.map(({ subject, units }) => [subject, Number(units)]))
}
