import { waitUntil } from '@weir/runtime/wait-until.ts'
import { findRollups, type Rollup, type Span, withinSpan } from '../audit/rollups.ts'
import { type ClickHouseClient, readRows } from '../connect.ts'
import { isInsertRunning } from '../insert.ts'
import type { TopicIdPartition } from '../number-queries.ts'
import { type RollupOutcome, repairRollup, subjectsMax } from './repair-rollup.ts'
import { type BlockRows, hasBlockRows, repairBlockRows } from './repair-rows.ts'
import { type RepairOptions, RepairSession } from './repair-session.ts'

/** A block that was sent more than once: each table may have it, lack it, or have it twice. */
export interface InDoubtBlock extends Pick<TopicIdPartition, 'topic' | 'topicId'> {
  readonly table: string
  /** The deduplication token that it was inserted under. */
  readonly dedupToken: string
  /** Its rows as they were inserted, month by month. */
  readonly months: readonly Buffer[]
}

/** What a repair found. */
export interface RepairReport {
  /** Raw rows that were missing or stood there twice. */
  readonly rows: number
  /** Rollups whose sums were wrong, and are right now. */
  readonly rollups: readonly string[]
  /** Rollups that others wrote into all the while, so that they could not be compared. */
  readonly undetermined: readonly string[]
}

const hourMs = 3_600_000

interface BlockRow {
  readonly partition: number
  readonly offset: number
  readonly ts: string
  readonly subject: string
  readonly parents?: readonly string[]
}

function rowsOf(months: readonly Buffer[]) {
  const lines = months.flatMap((month) => month.toString('utf8').split('\n')).filter((line) => line !== '')
  return lines.map((line) => {
    const { partition, offset, ts, subject, parents = [] }: BlockRow = JSON.parse(line)
    return { line, partition, offset, subject, parents, tsMs: Date.parse(`${ts.replace(' ', 'T')}Z`) }
  })
}

/** A block's rows by partition. */
const byPartition = ({ topic, topicId, table }: InDoubtBlock, rows: ReturnType<typeof rowsOf>): BlockRows[] =>
  [...Map.groupBy(rows, ({ partition }) => partition)].map(([partition, own]) => {
    return { topic, topicId, table, partition, rows: own }
  })

/** Whether the raw table has any row of a block. */
export async function hasRowsOf(client: ClickHouseClient, block: InDoubtBlock): Promise<boolean> {
  for (const part of byPartition(block, rowsOf(block.months))) if (await hasBlockRows(client, part)) return true
  return false
}

/** The hours that the rows fall in, neighbours as one span: a row with a wrong clock must not have months compared. */
function hoursOf(rows: readonly { readonly tsMs: number }[]): Span[] {
  const hours = new Set(rows.map(({ tsMs }) => Math.floor(tsMs / hourMs) * hourMs))
  const spans: Span[] = []
  for (const fromMs of [...hours].sort((a, b) => a - b)) {
    const last = spans.at(-1)
    if (last?.toMs === fromMs) spans[spans.length - 1] = { ...last, toMs: fromMs + hourMs }
    else spans.push({ fromMs, toMs: fromMs + hourMs })
  }
  return spans
}

/**
 * Whether a block that came at a time has to be compared once it was sent again: ClickHouse was started since, as its
 * own clock tells how long it has run, or a view was changed since. A block that it accepted before it was killed can
 * be in some tables and not in others, and a view that was created again does not know which blocks it has seen.
 */
export async function isDoubtfulSince(client: ClickHouseClient, tsMs: number): Promise<boolean> {
  const [row] = await readRows<{ seconds: number; changed: number }>(
    client,
    `SELECT uptime() AS seconds, toUnixTimestamp(max(metadata_modification_time)) AS changed FROM system.tables
      WHERE database = currentDatabase() AND engine = 'MaterializedView'`,
  )
  // The time of a change is that of its second's start.
  const changedMs = (Number(row?.changed ?? 0) + 1) * 1_000
  return Math.max(changedMs, Date.now() - Number(row?.seconds ?? 0) * 1_000) > tsMs
}

/** A delete of one block takes well under a second; if one does not end, the whole block is tried again. */
const deletesMsMax = 30_000

/**
 * Waits for deletes that a killed server was at. They go on by themselves at its next start, part by part: what is
 * counted before they end may be gone a moment later.
 */
async function waitForDeletes(session: RepairSession): Promise<void> {
  const areDone = async () => {
    const running = await session.query(
      `SELECT DISTINCT table FROM system.mutations
        WHERE database = currentDatabase() AND NOT is_done AND NOT is_killed AND command LIKE '%_row_exists%'`,
    )
    return running.length === 0
  }
  const isOver = await waitUntil(areDone, { deadlineMs: deletesMsMax, everyMs: 200 })
  if (isOver !== true) throw new Error('ClickHouse is still deleting rows: see system.mutations')
}

/** Unauthenticated callers: their records come by every partition, also while rows of only one are there. */
const unauthenticated = '_unauthenticated'

/** Returns the subjects whose rows came by several partitions, so that several processes write their buckets. */
async function sharedAmong(session: RepairSession, { source }: Rollup, span: Span): Promise<ReadonlySet<string>> {
  const rows = await session.query<{ subject: string }>(
    `SELECT subject FROM ${source} WHERE ${withinSpan(span)} GROUP BY subject HAVING uniqExact(partition) > 1`,
  )
  return new Set([...rows.map(({ subject }) => subject), unauthenticated])
}

/** Repairs the buckets of a block's subjects: all other buckets of its hours are other blocks' business. */
async function repairOfSubjects(
  session: RepairSession,
  rollup: Rollup,
  span: Span,
  rows: ReturnType<typeof rowsOf>,
): Promise<RollupOutcome[]> {
  if (!rollup.keys.includes('subject')) return [await repairRollup(session, rollup, span)]
  // Records of those below come by any partition.
  const above = new Set(rollup.countsAbove ? rows.flatMap(({ parents }) => parents) : [])
  const subjects = [...new Set([...rows.map(({ subject }) => subject), ...above])]
  const outcomes: RollupOutcome[] = []
  for (let at = 0; at < subjects.length; at += subjectsMax) {
    const some = subjects.slice(at, at + subjectsMax)
    const shared = await sharedAmong(session, rollup, { ...span, subjects: some })
    for (const isShared of [false, true]) {
      const mine = some.filter((subject) => (shared.has(subject) || above.has(subject)) === isShared)
      if (mine.length > 0) outcomes.push(await repairRollup(session, rollup, { ...span, subjects: mine }, isShared))
    }
  }
  return outcomes
}

/**
 * Compares every table with a block that is in doubt, and repairs what differs. A server that is killed may have
 * written a block's token and not its part, or its part and not its token: for MergeTree these are two steps. Sent
 * again, the block is then in that table never, or twice, while the other tables have it once. Safe to repeat, also
 * after a crash within.
 */
export async function repairBlock(
  client: ClickHouseClient,
  block: InDoubtBlock,
  options: RepairOptions = {},
): Promise<RepairReport> {
  const { dedupToken, table, months } = block
  const rows = rowsOf(months)
  if (rows.length === 0) return { rows: 0, rollups: [], undetermined: [] }
  // What an attempt before has begun must be over before anything is counted.
  if (await isInsertRunning(client, dedupToken)) throw new Error(`ClickHouse is still inserting ${dedupToken}`)
  const session = new RepairSession(client, dedupToken, options)
  await waitForDeletes(session)
  await session.catchUp()
  let wrong = 0
  for (const part of byPartition(block, rows)) wrong += await repairBlockRows(session, part)

  const repaired: string[] = []
  const undetermined: string[] = []
  for (const rollup of await findRollups(client)) {
    if (rollup.source !== table) continue
    const keptFromMs = rollup.keptMs === undefined ? 0 : Date.now() - rollup.keptMs
    const outcomes: RollupOutcome[] = []
    for (const span of hoursOf(rows)) {
      if (span.fromMs >= keptFromMs) outcomes.push(...(await repairOfSubjects(session, rollup, span, rows)))
    }
    if (outcomes.includes('repaired')) repaired.push(rollup.table)
    if (outcomes.includes('undetermined')) undetermined.push(rollup.table)
  }
  return { rows: wrong, rollups: repaired, undetermined }
}
