import { findRollups } from '../audit/rollups.ts'
import type { Span } from '../audit/span.ts'
import type { ClickHouseClient } from '../connect.ts'
import { isInserting } from '../insert.ts'
import type { PartitionLife } from '../number-queries.ts'
import { MendConnection } from './mend-connection.ts'
import { mendRaw } from './mend-raw.ts'
import { mendRollup } from './mend-rollup.ts'

/** A block that was inserted again because nobody knew whether it had been. */
export interface DoubtedBlock extends PartitionLife {
  readonly table: string
  readonly token: string
  /** As they were inserted, month by month. */
  readonly months: readonly Buffer[]
}

/** What ClickHouse had not taken, or had taken twice. */
export interface Mended {
  readonly rows: number
  /** Tables made right. */
  readonly rollups: readonly string[]
  /** Tables that others wrote into all the while, so that they could not be compared. */
  readonly unsure: readonly string[]
}

export interface MendOptions {
  /** Ends what is under way; the server ends it too. */
  readonly signal?: AbortSignal
  /** Somebody else does it now: from then on nothing is written. */
  readonly isStale?: () => boolean
}

/** A row of the block, as far as it matters where it is counted. */
export interface DoubtedRow {
  readonly line: string
  readonly offset: number
  /** `YYYY-MM` */
  readonly month: string
  readonly tsMs: number
  readonly subject: string
}

const hourMs = 3_600_000

function rowsOf(months: readonly Buffer[]): DoubtedRow[] {
  const lines = months.flatMap((one) => one.toString('utf8').split('\n'))
  return lines
    .filter((line) => line !== '')
    .map((line) => {
      const { offset, ts, subject }: { offset: number; ts: string; subject: string } = JSON.parse(line)
      return { line, offset, subject, month: ts.slice(0, 7), tsMs: Date.parse(`${ts.replace(' ', 'T')}Z`) }
    })
}

/** The hours in which the rows lie, neighbours as one: a row with a clock of its own must not have months compared. */
function hoursOf(rows: readonly DoubtedRow[]): Span[] {
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
 * Whether ClickHouse was started after a time, as its own clock tells how long it runs. What it took before it was killed is what
 * a block can be lost of.
 */
export async function startedAfter(client: ClickHouseClient, tsMs: number): Promise<boolean> {
  const answer = await client.query({ query: 'SELECT uptime() AS seconds', format: 'JSONEachRow' })
  const [row] = await answer.json<{ seconds: number }>()
  return Date.now() - Number(row?.seconds ?? 0) * 1_000 > tsMs
}

/** A delete of one block takes well under a second; one that does not end is tried again with the block, and told meanwhile. */
const deletesMsMax = 30_000

/**
 * A delete that a killed server was at goes on by itself at its next start, part by part: what is counted before it ends may be gone a
 * moment later.
 */
async function untilDeleted(connection: MendConnection): Promise<void> {
  const endMs = performance.now() + deletesMsMax
  for (let attempt = 0; ; attempt += 1) {
    const undone = await connection.ask<{ table: string }>(
      `SELECT DISTINCT table FROM system.mutations
        WHERE database = currentDatabase() AND NOT is_done AND NOT is_killed AND command LIKE '%_row_exists%'`,
    )
    if (undone.length === 0) return
    const tables = undone.map(({ table }) => table).join(', ')
    if (performance.now() > endMs) throw new Error(`ClickHouse still deletes rows of ${tables}`)
    await connection.pause(attempt)
  }
}

/**
 * Compares what ClickHouse has of a block with the block, table by table, and mends what differs. A server that is killed may have
 * written a block's token and not its part, or its part and not its token: for MergeTree these are two steps. Sent again, the block
 * is then in that table never, or twice, while the other tables have it once. Safe to repeat, also after a crash within.
 */
export async function mendBlock(
  client: ClickHouseClient,
  block: DoubtedBlock,
  options: MendOptions = {},
): Promise<Mended> {
  const all = rowsOf(block.months)
  if (all.length === 0) return { rows: 0, rollups: [], unsure: [] }
  // What an attempt before has begun must be over before anything is counted.
  if (await isInserting(client, block.token)) throw new Error(`ClickHouse still works on ${block.token}`)
  const connection = new MendConnection(client, block.token, options)
  await untilDeleted(connection)
  const rows = await mendRaw(connection, block, all)

  const spans = hoursOf(all)
  const subjects = [...new Set(all.map(({ subject }) => subject))]
  const rollups: string[] = []
  const unsure: string[] = []
  for (const rollup of await findRollups(client)) {
    if (rollup.source !== block.table) continue
    const outcomes = new Set<string>()
    for (const span of spans) {
      const keptFromMs = rollup.keptMs === undefined ? 0 : Math.ceil((Date.now() - rollup.keptMs) / hourMs) * hourMs
      if (span.fromMs >= keptFromMs) outcomes.add(await mendRollup(connection, rollup, span, subjects))
    }
    if (outcomes.has('mended')) rollups.push(rollup.table)
    if (outcomes.has('unsure')) unsure.push(rollup.table)
  }
  return { rows, rollups, unsure }
}
