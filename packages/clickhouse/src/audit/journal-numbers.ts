import type { Hole, JournalNumbers, KnownMissing } from '@weir/core/audit/compare-numbers.ts'
import type { ClickHouseClient } from '../connect.ts'
import { readRows } from '../read-rows.ts'
import { type Span, withinSpan } from './span.ts'

/** Holes of one journal that are looked at; more are a catastrophe that its first ones show as well. */
const holesMax = 1_000

/** Which rows: a topic and the table that its records become rows of. */
export interface NumberedRows {
  readonly topic: string
  /** `decisions` */
  readonly table: string
}

interface Journal {
  readonly journal: string
  readonly partition: number
  readonly rows: string
  readonly numbers: string
  readonly last: string
  readonly last_offset: string
}

/** How far each journal says that it numbered, by journal and partition. */
async function markedUpTo(client: ClickHouseClient, topic: string, span: Span): Promise<Map<string, number>> {
  const rows = await readRows<{ journal: string; partition: number; seq: string }>(
    client,
    `SELECT m.journal AS journal, m.partition AS partition, max(m.seq) AS seq FROM marks AS m
     WHERE m.topic = {topic:String} GROUP BY journal, partition
     HAVING max(m.mark) >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND min(m.first_mark) < fromUnixTimestamp64Milli({to:Int64}, 'UTC')`,
    { topic, from: span.fromMs, to: span.toMs },
  )
  return new Map(rows.map(({ journal, partition, seq }) => [`${journal} ${partition}`, Number(seq)]))
}

/** The numbers that are missing between rows of one journal. Number 0 is the first. */
async function innerHoles(
  client: ClickHouseClient,
  table: string,
  journal: string,
  partition: number,
): Promise<Hole[]> {
  const rows = await readRows<{ from: string; to: string; after: string; before: string }>(
    client,
    `SELECT previous + 1 AS from, number - 1 AS to, previous_at AS after, at AS before FROM (
       SELECT toInt64(seq) AS number, place AS at,
         lagInFrame(toInt64(seq), 1, -1) OVER w AS previous, lagInFrame(place, 1, -1) OVER w AS previous_at
       FROM (SELECT seq, toInt64(min(offset)) AS place FROM ${table}
         WHERE journal = {journal:UUID} AND partition = {partition:UInt16} GROUP BY seq)
       WINDOW w AS (ORDER BY seq ROWS BETWEEN 1 PRECEDING AND CURRENT ROW))
     WHERE number > previous + 1 ORDER BY number LIMIT ${holesMax}`,
    { journal, partition },
  )
  return rows.map(({ from, to, after, before }) => ({
    from: Number(from),
    to: Number(to),
    afterOffset: Number(after),
    beforeOffset: Number(before),
  }))
}

/**
 * The numbers of every journal that has rows or marks in the span: of all its rows, also those outside of it. Reads the marks
 * first, so that what arrives meanwhile is not missed.
 */
export async function readJournalNumbers(
  client: ClickHouseClient,
  { topic, table }: NumberedRows,
  span: Span,
): Promise<JournalNumbers[]> {
  const marked = await markedUpTo(client, topic, span)
  const journals = await readRows<Journal>(
    client,
    `SELECT r.journal AS journal, r.partition AS partition, count() AS rows, uniqExact(r.seq) AS numbers,
       max(r.seq) AS last, max(r.offset) AS last_offset
     FROM ${table} AS r
     WHERE r.journal IN (SELECT DISTINCT journal FROM ${table} WHERE ${withinSpan(span)}) OR r.journal IN {marked:Array(UUID)}
     GROUP BY journal, partition ORDER BY journal, partition`,
    { marked: [...new Set([...marked.keys()].map((key) => key.split(' ')[0] ?? ''))] },
  )
  const result: JournalNumbers[] = []
  for (const one of journals) {
    const { journal, partition } = one
    const [rows, numbers, last] = [Number(one.rows), Number(one.numbers), Number(one.last)]
    const holes = numbers === last + 1 ? [] : await innerHoles(client, table, journal, partition)
    const upTo = marked.get(`${journal} ${partition}`) ?? 0
    marked.delete(`${journal} ${partition}`)
    const afterOffset = Number(one.last_offset)
    const tail: Hole[] =
      upTo > last + 1 ? [{ from: last + 1, to: upTo - 1, afterOffset, beforeOffset: Number.POSITIVE_INFINITY }] : []
    result.push({ topic, journal, partition, rows, numbers, holes: [...holes, ...tail] })
  }
  for (const [key, upTo] of marked) {
    const [journal = '', partition] = key.split(' ')
    const hole = { from: 0, to: upTo - 1, afterOffset: -1, beforeOffset: Number.POSITIVE_INFINITY }
    const none = { topic, journal, partition: Number(partition), rows: 0, numbers: 0 }
    result.push({ ...none, holes: upTo > 0 ? [hole] : [] })
  }
  return result
}

/** The numbers that are recorded as missing. */
export async function readRecordedGaps(client: ClickHouseClient, topic: string): Promise<KnownMissing[]> {
  const rows = await readRows<{ journal: string; partition: number; from_seq: string; to_seq: string }>(
    client,
    `SELECT journal, partition, from_seq, to_seq FROM gaps FINAL
     WHERE topic = {topic:String} AND cause IN ('journal_full', 'refused', 'lost')`,
    { topic },
  )
  return rows.map(({ journal, partition, from_seq: from, to_seq: to }) => ({
    ...{ topic, journal, partition },
    range: { from: Number(from), to: Number(to) },
  }))
}
