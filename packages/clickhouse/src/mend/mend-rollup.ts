import { addSumsQuery, missingSums, type SumsRow } from '../audit/rollup-sums.ts'
import { type Rollup, rebuildQueries } from '../audit/rollups.ts'
import { type Span, withinSpan } from '../audit/span.ts'
import type { MendConnection } from './mend-connection.ts'

/** `unsure`: there was no moment in which it could be compared. */
export type RollupOutcome = 'right' | 'mended' | 'unsure'

/** Of one statement: its text stays far below the 256 kB that ClickHouse reads of one. */
const subjectsAtOnce = 500
/** Others' inserts take well under a second each, with pauses between; a table that finds no quiet in so long is told. */
const quietMsMax = 30_000
/** A process that had the block before may do the same for a moment: then what both have added is taken away again. */
const attemptsMax = 20

/** Callers that nobody knows: their records come by every partition, also where rows of only one are there yet. */
const strangers = '_unauthenticated'

/** Changes with every insert into Weir's tables; undefined while one is under way. */
async function writtenSoFar(connection: MendConnection): Promise<string | undefined> {
  const [row] = await connection.ask<{ busy: string; written: unknown }>(
    `SELECT (SELECT count() FROM system.processes WHERE query_kind = 'Insert') AS busy,
      (SELECT groupArray((table, last)) FROM (SELECT table, max(max_block_number) AS last FROM system.parts
        WHERE database = currentDatabase() AND active GROUP BY table ORDER BY table)) AS written`,
  )
  return row?.busy === '0' ? JSON.stringify(row.written) : undefined
}

async function makeRight(connection: MendConnection, rollup: Rollup, span: Span, missing: readonly SumsRow[]) {
  const { columns, keys, sums } = rollup
  // States of quantiles cannot be subtracted.
  const queries =
    columns.length === keys.length + sums.length
      ? addSumsQuery(rollup, missing)
      : rebuildQueries(rollup, { ...span, subjects: [...new Set(missing.map(({ subject = '' }) => subject))] })
  for (const { query, params } of queries) await connection.write(query, params)
}

/**
 * Nobody else writes these buckets: what differs is ours. Unless somebody had the block before and mends it too: after the first
 * attempt chance parts the two.
 */
async function mendOwn(connection: MendConnection, rollup: Rollup, span: Span): Promise<RollupOutcome> {
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    if (attempt > 1) await connection.pause(attempt)
    const missing = await missingSums(connection, rollup, span)
    if (missing.length === 0) return attempt === 1 ? 'right' : 'mended'
    await makeRight(connection, rollup, span, missing)
  }
  return 'unsure'
}

/**
 * Others write these buckets, so they are compared in a moment in which nobody does. Several may do so at once, and would each add what
 * is missing, and then each take it away again, ever more: so each waits as chance will have it, and adds at once what it found.
 */
async function mendShared(connection: MendConnection, rollup: Rollup, span: Span): Promise<RollupOutcome> {
  const endMs = performance.now() + quietMsMax
  let adds = 0
  while (performance.now() < endMs) {
    await connection.pause(adds)
    const before = await writtenSoFar(connection)
    if (before === undefined) continue
    const missing = await missingSums(connection, rollup, span)
    if ((await writtenSoFar(connection)) !== before) continue
    if (missing.length === 0) return adds > 0 ? 'mended' : 'right'
    await makeRight(connection, rollup, span, missing)
    adds += 1
  }
  return 'unsure'
}

/**
 * Of these subjects those whose rows came by several partitions, so that several processes write their buckets: everybody where
 * partitions were added.
 */
async function sharedSubjects(connection: MendConnection, { source }: Rollup, span: Span): Promise<Set<string>> {
  const rows = await connection.ask<{ subject: string }>(
    `SELECT subject FROM ${source} WHERE ${withinSpan(span)} GROUP BY subject HAVING uniqExact(partition) > 1`,
  )
  return new Set(rows.map(({ subject }) => subject))
}

/** Makes a rollup's buckets of these subjects in a span what the raw rows say. */
export async function mendRollup(
  connection: MendConnection,
  rollup: Rollup,
  span: Span,
  subjects: readonly string[],
): Promise<RollupOutcome> {
  if (!rollup.keys.includes('subject')) return mendShared(connection, rollup, span)
  const outcomes: RollupOutcome[] = []
  for (let at = 0; at < subjects.length; at += subjectsAtOnce) {
    const some = subjects.slice(at, at + subjectsAtOnce)
    const shared = await sharedSubjects(connection, rollup, { ...span, subjects: some })
    if (some.includes(strangers)) shared.add(strangers)
    const own = some.filter((subject) => !shared.has(subject))
    if (own.length > 0) outcomes.push(await mendOwn(connection, rollup, { ...span, subjects: own }))
    if (shared.size > 0) outcomes.push(await mendShared(connection, rollup, { ...span, subjects: [...shared] }))
  }
  return outcomes.find((one) => one === 'unsure') ?? outcomes.find((one) => one === 'mended') ?? 'right'
}
