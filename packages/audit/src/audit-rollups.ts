import { differingBuckets, rawSums, rollupSums } from '@weir/clickhouse/audit/rollup-sums.ts'
import { findRollups, type Rollup, type Span } from '@weir/clickhouse/audit/rollups.ts'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { compareRollup, type HourDifference, rollupDiscrepancies } from '@weir/core/audit/compare-rollups.ts'
import type { Discrepancy } from '@weir/core/audit/discrepancy.ts'
import type { Progress } from './progress.ts'

const hourMs = 3_600_000
/** Rows of an hour that are named. */
const namedMax = 3

/** The hours of a span that a rollup still keeps. */
function keptSpan({ keptMs }: Rollup, { fromMs, toMs }: Span, nowMs: number): Span {
  const oldestMs = keptMs === undefined ? fromMs : Math.max(fromMs, nowMs - keptMs)
  return { fromMs: Math.ceil(oldestMs / hourMs) * hourMs, toMs: Math.ceil(toMs / hourMs) * hourMs }
}

/** Returns the span of the hour that differs. */
export const hourSpan = ({ hourMs: fromMs }: Pick<HourDifference, 'hourMs'>): Span => ({
  fromMs,
  toMs: fromMs + hourMs,
})

async function compare(client: ClickHouseClient, rollup: Rollup, span: Span): Promise<HourDifference[]> {
  const before = await rawSums(client, rollup, span)
  const found = await rollupSums(client, rollup, span)
  const after = await rawSums(client, rollup, span)
  return compareRollup({ table: rollup.table, before, rollup: found, after })
}

/**
 * Compares every rollup with its raw rows, hour by hour. An insert in progress fills one before the other: hours that
 * differ are read again after `pause`, and only those that still differ are findings.
 */
export async function auditRollups(
  client: ClickHouseClient,
  span: Span,
  nowMs: number,
  { pause, tell = () => undefined }: { readonly pause: () => Promise<void>; readonly tell?: Progress['tell'] },
) {
  const findings: Discrepancy[] = []
  const differences: { rollup: Rollup; difference: HourDifference }[] = []
  const rollups = await findRollups(client)
  for (const [at, rollup] of rollups.entries()) {
    tell(rollup.table, at / rollups.length)
    const suspects = await compare(client, rollup, keptSpan(rollup, span, nowMs))
    if (suspects.length > 0) await pause()
    for (const suspect of suspects) {
      for (const difference of await compare(client, rollup, hourSpan(suspect))) {
        const rows = await differingBuckets(client, rollup, hourSpan(difference), namedMax)
        findings.push(...rollupDiscrepancies([difference], () => rows.join('; ')))
        differences.push({ rollup, difference })
      }
    }
  }
  return { findings, differences }
}
