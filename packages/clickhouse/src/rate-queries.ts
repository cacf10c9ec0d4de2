import type { ClickHouseClient } from './connect.ts'

/** All subjects together. No subject of a policy begins with `_`. */
const everybody = '_all'
/** A question that takes longer does not keep up with its schedule. */
const secondsMax = 30

/** Whose requests in a window are far more, or far fewer, than in the windows before it. Times are whole minutes. */
export interface RateQuestion {
  /** Of refusals; else a fall of what was accepted. */
  readonly isRise: boolean
  readonly per: 'subject' | 'all'
  /** The first instant after the window. */
  readonly endMs: number
  readonly windowMs: number
  readonly windowsBefore: number
  readonly factor: number
  /** In the window of a rise, or usually before a fall. */
  readonly least: number
  readonly limit: number
}

export interface RateRow {
  readonly subject: string
  /** Decisions in the window. */
  readonly count: number
  /** In one of the windows before, on average. */
  readonly usual: number
}

/** Those with most requests first. Rejects with ClickHouse's error. */
export async function readChangedRates(client: ClickHouseClient, question: RateQuestion): Promise<RateRow[]> {
  const { isRise, per, endMs, windowMs, windowsBefore, factor, least, limit } = question
  const [end, start] = [endMs / 1_000, (endMs - windowMs) / 1_000]
  const answer = await client.query({
    query: `SELECT ${per === 'all' ? `'${everybody}'` : 'u.subject'} AS who,
        sumIf(u.count, u.ts >= toDateTime({start:UInt32}, 'UTC')) AS decisions,
        sumIf(u.count, u.ts < toDateTime({start:UInt32}, 'UTC')) / {before:UInt32} AS average
      FROM weir.usage_1m AS u
      WHERE u.ts >= toDateTime({first:UInt32}, 'UTC') AND u.ts < toDateTime({end:UInt32}, 'UTC') AND u.outcome = {outcome:String}
      GROUP BY who
      HAVING ${isRise ? 'decisions >= {least:UInt64} AND decisions >= average * {factor:UInt32}' : 'average >= {least:UInt64} AND decisions * {factor:UInt32} <= average'}
      ORDER BY decisions + average DESC, who
      LIMIT {limit:UInt32}`,
    query_params: {
      ...{ start, end, first: start - (windowsBefore * windowMs) / 1_000, before: windowsBefore },
      ...{ outcome: isRise ? 'deny' : 'allow', least, factor, limit },
    },
    format: 'JSONEachRow',
    clickhouse_settings: { output_format_json_quote_64bit_integers: 0, max_execution_time: secondsMax },
  })
  const rows = await answer.json<{ who: string; decisions: number; average: number }>()
  return rows.map(({ who, decisions, average }) => ({ subject: who, count: decisions, usual: average }))
}
