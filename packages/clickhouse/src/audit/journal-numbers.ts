import type { JournalNumbers, KnownMissing, MissingRange } from '@weir/core/audit/compare-numbers.ts'
import type { Range } from '@weir/core/audit/ranges.ts'
import { type ClickHouseClient, countsAsNumbers, readRows } from '../connect.ts'
import type { TopicIdPartition } from '../number-queries.ts'
import { type Span, withinSpan } from './rollups.ts'

/** Missing ranges that are read of one journal: the first ones show as well that there are too many. */
const rangesMax = 1_000

interface Journal extends Omit<JournalNumbers, 'topic' | 'missing'> {
  readonly last: number
  readonly lastOffset: number
}

/** Rows, sequence numbers and offsets stay far below 2^53. */
const asNumbers = { clickhouse_settings: countsAsNumbers }

/** The last number that each journal's watermarks report, by journal and partition. */
async function markedUpTo(client: ClickHouseClient, topic: string, span: Span): Promise<Map<string, number>> {
  const rows = await readRows<{ journal: string; partition: number; seq: number }>(
    client,
    `SELECT m.journal AS journal, m.partition AS partition, max(m.seq) AS seq FROM marks AS m
     WHERE m.topic = {topic:String} GROUP BY journal, partition
     HAVING max(m.mark) >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND min(m.first_mark) < fromUnixTimestamp64Milli({to:Int64}, 'UTC')`,
    { topic, from: span.fromMs, to: span.toMs },
    asNumbers,
  )
  return new Map(rows.map(({ journal, partition, seq }) => [`${journal} ${partition}`, seq]))
}

/** The numbers that are missing between rows of one journal. Number 0 is the first. */
const innerRanges = (client: ClickHouseClient, table: string, journal: string, partition: number) =>
  readRows<MissingRange>(
    client,
    `SELECT previous + 1 AS from, number - 1 AS to, previous_at AS afterOffset, at AS beforeOffset FROM (
       SELECT toInt64(seq) AS number, place AS at,
         lagInFrame(toInt64(seq), 1, -1) OVER w AS previous, lagInFrame(place, 1, -1) OVER w AS previous_at
       FROM (SELECT seq, toInt64(min(offset)) AS place FROM ${table}
         WHERE journal = {journal:UUID} AND partition = {partition:UInt16} GROUP BY seq)
       WINDOW w AS (ORDER BY seq ROWS BETWEEN 1 PRECEDING AND CURRENT ROW))
     WHERE number > previous + 1 ORDER BY number LIMIT ${rangesMax}`,
    { journal, partition },
    asNumbers,
  )

/**
 * Reads the sequence numbers of every journal that has rows or watermarks in the span: of all its rows, also those
 * outside of it. Reads the watermarks first, so that rows that arrive in between do not count as missing. `table`: the
 * table of the topic's rows.
 */
export async function readJournalNumbers(
  client: ClickHouseClient,
  { topic, table }: { readonly topic: string; readonly table: string },
  span: Span,
): Promise<JournalNumbers[]> {
  const marked = await markedUpTo(client, topic, span)
  const journals = await readRows<Journal>(
    client,
    `SELECT r.journal AS journal, r.partition AS partition, count() AS rows, uniqExact(r.seq) AS numbers,
       max(r.seq) AS last, max(r.offset) AS lastOffset
     FROM ${table} AS r
     WHERE r.journal IN (SELECT DISTINCT journal FROM ${table} WHERE ${withinSpan(span)}) OR r.journal IN {marked:Array(UUID)}
     GROUP BY journal, partition ORDER BY journal, partition`,
    { marked: [...new Set([...marked.keys()].map((key) => key.split(' ')[0] ?? ''))] },
    asNumbers,
  )
  const result: JournalNumbers[] = []
  for (const { journal, partition, rows, numbers, last, lastOffset: afterOffset } of journals) {
    const missing = numbers === last + 1 ? [] : await innerRanges(client, table, journal, partition)
    const upTo = marked.get(`${journal} ${partition}`) ?? 0
    marked.delete(`${journal} ${partition}`)
    const tail: MissingRange[] =
      upTo > last + 1 ? [{ from: last + 1, to: upTo - 1, afterOffset, beforeOffset: Number.POSITIVE_INFINITY }] : []
    result.push({ topic, journal, partition, rows, numbers, missing: [...missing, ...tail] })
  }
  for (const [key, upTo] of marked) {
    const [journal = '', partition] = key.split(' ')
    const range = { from: 0, to: upTo - 1, afterOffset: -1, beforeOffset: Number.POSITIVE_INFINITY }
    const none = { topic, journal, partition: Number(partition), rows: 0, numbers: 0 }
    result.push({ ...none, missing: upTo > 0 ? [range] : [] })
  }
  return result
}

/** Reads the numbers that are recorded as missing. */
export async function readRecordedGaps(client: ClickHouseClient, topic: string): Promise<KnownMissing[]> {
  const rows = await readRows<Range & { journal: string; partition: number }>(
    client,
    `SELECT journal, partition, from_seq AS from, to_seq AS to FROM gaps FINAL
     WHERE topic = {topic:String} AND cause IN ('journal_full', 'refused', 'lost')`,
    { topic },
    asNumbers,
  )
  return rows.map(({ journal, partition, ...range }) => ({ topic, journal, partition, range }))
}

/** Rows from before the topic id was recorded count as of this incarnation. */
const ofThisIncarnation = "topic_id IN ({topicId:UUID}, toUUID('00000000-0000-0000-0000-000000000000'))"

/** Returns the offsets of a range of a partition that are no rows. */
export async function missingOffsets(
  client: ClickHouseClient,
  table: string,
  { partition, topicId }: Omit<TopicIdPartition, 'topic'>,
  { from, to }: Range,
): Promise<Range[]> {
  if (to < from) return []
  return readRows<Range>(
    client,
    `SELECT previous + 1 AS from, place - 1 AS to FROM (
        SELECT place, lagInFrame(place, 1, {from:Int64} - 1) OVER (ORDER BY place ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS previous
        FROM (SELECT DISTINCT toInt64(offset) AS place FROM ${table}
          WHERE partition = {partition:UInt16} AND offset BETWEEN {from:UInt64} AND {to:UInt64} AND ${ofThisIncarnation}
          UNION ALL SELECT {to:Int64} + 1))
      WHERE place > previous + 1 ORDER BY place`,
    { partition, topicId, from, to },
    asNumbers,
  )
}

/** Returns which of a journal's numbers in a partition are rows, at whatever offset. */
export async function presentNumbers(
  client: ClickHouseClient,
  table: string,
  journal: string,
  partition: number,
  numbers: readonly number[],
): Promise<ReadonlySet<number>> {
  const rows = await readRows<{ seq: number }>(
    client,
    `SELECT DISTINCT seq FROM ${table}
      WHERE journal = {journal:UUID} AND partition = {partition:UInt16} AND seq IN {numbers:Array(UInt64)}`,
    { journal, partition, numbers },
    asNumbers,
  )
  return new Set(rows.map(({ seq }) => seq))
}
