import { setTimeout as pause } from 'node:timers/promises'
import { addSums, missingSums } from '../audit/rollup-sums.ts'
import { findRollups, type Rollup, rebuildRollup } from '../audit/rollups.ts'
import type { Span } from '../audit/span.ts'
import type { ClickHouseClient } from '../connect.ts'
import { insertBlock } from '../insert.ts'
import type { PartitionLife } from '../number-queries.ts'

/** A block that was inserted again because nobody knew whether it had been. */
export interface DoubtedBlock extends PartitionLife {
  readonly table: string
  readonly token: string
  /** As they were inserted, month by month. */
  readonly months: readonly Buffer[]
}

/** What ClickHouse had not taken, although it remembered the block. */
export interface Mended {
  readonly rows: number
  /** Tables made right. */
  readonly rollups: readonly string[]
  /** Tables that others wrote into all the while, so that they could not be compared. */
  readonly unsure: readonly string[]
}

const hourMs = 3_600_000
/** Of one statement: its text stays far below the 256 kB that ClickHouse reads of one. */
const subjectsAtOnce = 1_000
/** Between two looks at whether anybody writes. */
const quietEveryMs = 50
/** Other partitions' inserts take well under a second each, with pauses between; a table that finds no quiet in so long is told. */
const quietMsMax = 30_000

interface Row {
  readonly line: string
  readonly offset: number
  readonly tsMs: number
  readonly subject: string
}

interface Offsets {
  readonly from: number
  readonly to: number
}

function rowsOf(months: readonly Buffer[]): Row[] {
  return months.flatMap((lines) =>
    lines
      .toString('utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const { offset, ts, subject }: { offset: number; ts: string; subject: string } = JSON.parse(line)
        return { line, offset, tsMs: Date.parse(ts), subject }
      }),
  )
}

const inRange = `partition = {partition:UInt16} AND topic_id = {topicId:UUID}
  AND offset BETWEEN {from:UInt64} AND {to:UInt64}`

/** Where in Kafka its rows are from. */
const placeOf = ({ topic, topicId, partition }: DoubtedBlock, { from, to }: Offsets) => ({
  ...{ topic, topicId, partition, from, to },
})

async function insertForgotten(client: ClickHouseClient, block: DoubtedBlock, rows: readonly Row[], offsets: Offsets) {
  const answer = await client.query({
    query: `SELECT offset FROM ${block.table} WHERE ${inRange}`,
    query_params: placeOf(block, offsets),
    format: 'JSONEachRow',
  })
  const present = new Set((await answer.json<{ offset: string }>()).map(({ offset }) => Number(offset)))
  const gone = rows.filter(({ offset }) => !present.has(offset))
  const months = Map.groupBy(gone, ({ tsMs }) => new Date(tsMs).toISOString().slice(0, 7))
  for (const [month, lost] of months) {
    const lines = Buffer.from(lost.map(({ line }) => `${line}\n`).join(''))
    // Another token, for this one is remembered; and another each time, for it may be remembered in the same way.
    await insertBlock(client, { table: block.table, lines, token: `${block.token}:mend:${month}:${Date.now()}` })
  }
  return gone.length
}

/** Rows of weir.numbers only tell the smallest and the largest: one too many does no harm. */
async function addNumbers(client: ClickHouseClient, block: DoubtedBlock, offsets: Offsets): Promise<void> {
  await client.command({
    query: `INSERT INTO weir.numbers (topic, topic_id, partition, journal, from_offset, to_offset, from_seq, to_seq)
      SELECT {topic:String}, r.topic_id, r.partition, r.journal, min(r.offset), max(r.offset), min(r.seq), max(r.seq)
      FROM ${block.table} AS r WHERE ${inRange} GROUP BY ALL SETTINGS insert_deduplicate = 0, async_insert = 0`,
    query_params: placeOf(block, offsets),
  })
}

/** A subject's rows come by one partition, so nobody else writes these buckets. */
async function mendOfSubjects(client: ClickHouseClient, rollup: Rollup, span: Span, subjects: readonly string[]) {
  let isMended = false
  for (let at = 0; at < subjects.length; at += subjectsAtOnce) {
    const part = { ...span, subjects: subjects.slice(at, at + subjectsAtOnce) }
    const missing = await missingSums(client, rollup, part)
    if (missing.length === 0) continue
    const differing = [...new Set(missing.map(({ subject = '' }) => subject))]
    await rebuildRollup(client, rollup, { ...part, subjects: differing })
    isMended = true
  }
  return isMended
}

/** Changes with every insert into Weir's tables; undefined while one is under way. */
async function writtenSoFar(client: ClickHouseClient): Promise<string | undefined> {
  const answer = await client.query({
    query: `SELECT (SELECT count() FROM system.processes WHERE query_kind = 'Insert') AS busy,
      (SELECT groupArray((table, last)) FROM (SELECT table, max(max_block_number) AS last FROM system.parts
        WHERE database = 'weir' AND active GROUP BY table ORDER BY table)) AS written`,
    format: 'JSONEachRow',
  })
  const [row] = await answer.json<{ busy: string; written: unknown }>()
  return row?.busy === '0' ? JSON.stringify(row.written) : undefined
}

/** All partitions write these buckets, so they are compared in a moment in which none does; what is missing is added. */
async function mendOfAll(client: ClickHouseClient, rollup: Rollup, span: Span, signal: AbortSignal | undefined) {
  const endMs = performance.now() + quietMsMax
  for (let isMended = false; performance.now() < endMs; await pause(quietEveryMs, undefined, { signal })) {
    const before = await writtenSoFar(client)
    if (before === undefined) continue
    const missing = await missingSums(client, rollup, span)
    if ((await writtenSoFar(client)) !== before) continue
    if (missing.length === 0) return isMended ? 'mended' : 'right'
    await addSums(client, rollup, missing)
    isMended = true
  }
  return 'unsure'
}

/**
 * Whether ClickHouse was started after a time, as its own clock tells how long it runs. What it took before it was killed is what
 * a block can be lost of.
 */
export async function startedAfter(client: ClickHouseClient, tsMs: number): Promise<boolean> {
  const answer = await client.query({ query: 'SELECT uptime() AS seconds', format: 'JSONEachRow' })
  const [row] = await answer.json<{ seconds: number }>()
  return Date.now() - Number(row?.seconds ?? 0) * 1_000 > tsMs
}

/**
 * Compares what ClickHouse has of a block with the block, table by table, and mends what differs. A server that is killed may
 * remember in a table a block whose part it has not kept: MergeTree writes its list of tokens before it names the part. The
 * same token is then dropped there for good, although the other tables took it. Safe to repeat, also after a crash within.
 */
export async function mendBlock(client: ClickHouseClient, block: DoubtedBlock, signal?: AbortSignal): Promise<Mended> {
  const all = rowsOf(block.months)
  const [first] = all
  if (first === undefined) return { rows: 0, rollups: [], unsure: [] }
  const offsets = all.reduce(
    ({ from, to }, { offset }) => ({ from: Math.min(from, offset), to: Math.max(to, offset) }),
    { from: first.offset, to: first.offset },
  )
  const span = all.reduce(
    ({ fromMs, toMs }, { tsMs }) => ({ fromMs: Math.min(fromMs, tsMs), toMs: Math.max(toMs, tsMs) }),
    { fromMs: first.tsMs, toMs: first.tsMs },
  )
  const rows = await insertForgotten(client, block, all, offsets)
  await addNumbers(client, block, offsets)

  const subjects = [...new Set(all.map(({ subject }) => subject))]
  const rollups: string[] = []
  const unsure: string[] = []
  for (const rollup of await findRollups(client)) {
    if (rollup.source !== block.table) continue
    const keptFromMs = rollup.keptMs === undefined ? 0 : Math.ceil((Date.now() - rollup.keptMs) / hourMs) * hourMs
    const hours: Span = {
      fromMs: Math.max(Math.floor(span.fromMs / hourMs) * hourMs, keptFromMs),
      toMs: (Math.floor(span.toMs / hourMs) + 1) * hourMs,
    }
    if (hours.fromMs >= hours.toMs) continue
    const hasSubjects = rollup.keys.includes('subject')
    if (hasSubjects && (await mendOfSubjects(client, rollup, hours, subjects))) rollups.push(rollup.table)
    if (hasSubjects) continue
    const outcome = await mendOfAll(client, rollup, hours, signal)
    if (outcome === 'mended') rollups.push(rollup.table)
    if (outcome === 'unsure') unsure.push(rollup.table)
  }
  return { rows, rollups, unsure }
}
