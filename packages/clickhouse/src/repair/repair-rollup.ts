import { randomUUID } from 'node:crypto'
import { ClickHouseError } from '@clickhouse/client'
import { correctionLines, missingSums, type SumsRow } from '../audit/rollup-sums.ts'
import { type Rollup, rebuildQueries, type Span } from '../audit/rollups.ts'
import { processesOf } from '../every-replica.ts'
import type { RepairSession } from './repair-session.ts'

/** `undetermined`: others kept writing the buckets, so that they could not be compared. */
export type RollupOutcome = 'consistent' | 'repaired' | 'undetermined'

/** Others' inserts take well under a second each; a table without a quiet moment in this time is reported. */
const quietMsMax = 30_000
/** Another process may repair the same sums: what both added is subtracted, until random pauses separate the two. */
const writesMax = 20
/** Subjects that a statement names: its text stays far below the 256 kB that ClickHouse reads of one. */
export const subjectsMax = 500

interface WriteState {
  /** Changes with every insert into the span, of the rollup or of its raw rows. */
  readonly parts: string
  /** Query ids of all inserts under way. */
  readonly inserts: readonly string[]
}

async function readWriteState(session: RepairSession, { table, source }: Rollup, span: Span): Promise<WriteState> {
  await session.catchUp([table, source])
  // Each insert makes a part of one block, which ClickHouse lists for 8 minutes also after it was merged; merged parts
  // reach into spans that nothing was inserted into. A part without times belongs to a table that is not partitioned by
  // time: it may reach into any span.
  const parts = await session.query(
    `SELECT table, partition, max(max_block_number) AS last FROM system.parts
      WHERE database = currentDatabase() AND table IN {tables:Array(String)} AND min_block_number = max_block_number
        AND (max_time = toDateTime(0) OR max_time >= fromUnixTimestamp64Milli({fromMs:Int64})
          AND min_time < fromUnixTimestamp64Milli({toMs:Int64}))
      GROUP BY table, partition ORDER BY table, partition`,
    { tables: [table, source], fromMs: span.fromMs, toMs: span.toMs },
  )
  // After the parts: an insert that has one of its parts among them and not yet the other is among these.
  const inserts = await session.query<{ query_id: string }>(
    `SELECT query_id FROM ${processesOf(session.client)} WHERE query_kind = 'Insert'`,
  )
  return { parts: JSON.stringify(parts), inserts: inserts.map(({ query_id }) => query_id) }
}

/**
 * Returns what is missing in buckets that others write, read while no insert is partly visible: it waits for inserts
 * that were under way when it began, and takes the result only if no other reached the span meanwhile. Undefined if one
 * did, or if the deadline passed.
 */
async function missingInQuiet(
  session: RepairSession,
  rollup: Rollup,
  span: Span,
  endMs: number,
): Promise<SumsRow[] | undefined> {
  const { parts, inserts } = await readWriteState(session, rollup, span)
  for (let isBusy = inserts.length > 0; isBusy; ) {
    if (performance.now() > endMs) return undefined
    await session.pause(0)
    const now = await readWriteState(session, rollup, span)
    if (now.parts !== parts) return undefined
    isBusy = now.inserts.some((id) => inserts.includes(id))
  }
  const missing = await missingSums(session, rollup, span)
  return (await readWriteState(session, rollup, span)).parts === parts ? missing : undefined
}

async function writeMissing(session: RepairSession, rollup: Rollup, span: Span, missing: readonly SumsRow[]) {
  const { table, columns, keys, sums } = rollup
  if (columns.length === keys.length + sums.length) {
    await session.insert(table, correctionLines(rollup, missing), randomUUID())
    return
  }
  // States of quantiles, and maxima, cannot be subtracted.
  const subjects = [...new Set(missing.map(({ subject = '' }) => String(subject)))]
  const isNamed = keys.includes('subject') && subjects.length <= subjectsMax
  for (const query of rebuildQueries(rollup, isNamed ? { ...span, subjects } : span)) await session.command(query)
}

/** Codes by which a server says that another one of its cluster does not answer. */
const silentReplicaCodes = new Set(['198', '209', '210', '279'])

/** What a replica that does not answer inserts cannot be seen: buckets that it may write are not compared. */
const isReplicaSilent = (error: unknown) => error instanceof ClickHouseError && silentReplicaCodes.has(error.code)

/**
 * Makes a rollup's buckets of a span agree with the raw rows, also while others insert. Differences are added or
 * subtracted, so that no query sees less in between; buckets with quantiles or maxima are rebuilt from the raw rows.
 * Several processes may repair the same buckets concurrently. Safe to repeat, also after a crash within.
 *
 * @param isShared whether other processes may insert into these buckets. Only then a quiet moment is waited for.
 */
export async function repairRollup(
  session: RepairSession,
  rollup: Rollup,
  span: Span,
  isShared = true,
): Promise<RollupOutcome> {
  let endMs = performance.now() + quietMsMax
  for (let writes = 0; writes < writesMax && performance.now() < endMs; ) {
    if (isShared || writes > 0) await session.pause(writes)
    const missing = isShared
      ? await missingInQuiet(session, rollup, span, endMs).catch((error: unknown) => {
          if (session.client.cluster === undefined || !isReplicaSilent(error)) throw error
          return 'unseen' as const
        })
      : await missingSums(session, rollup, span)
    if (missing === 'unseen') return 'undetermined'
    if (missing === undefined) continue
    if (missing.length === 0) return writes > 0 ? 'repaired' : 'consistent'
    // Written immediately: the longer after the comparison, the more likely another process has written the same.
    await writeMissing(session, rollup, span, missing)
    writes += 1
    endMs = performance.now() + quietMsMax
  }
  return 'undetermined'
}
