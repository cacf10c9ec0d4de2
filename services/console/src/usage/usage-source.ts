import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { readCompleteness, readGaps } from '@weir/clickhouse/mark-queries.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { Period } from '@weir/core/prices/forecast.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { askUnits, askUnitTotals } from './unit-queries.ts'
import { askOutcomes, askUsage, askUsageTotals } from './usage-queries.ts'
import { openUsageStream, type StreamQuestion } from './usage-stream.ts'
import { askUtilization } from './utilization-queries.ts'

type Rows = 'decisions' | 'outcomes'

/** What the rollups answer. Every method rejects when ClickHouse does not. `streams` rest while their readers do. */
export const openUsageSource = (clickhouse: ClickHouseClient, streams: ClickHouseClient) => ({
  askUsage: askUsage.bind(undefined, clickhouse),
  /** Sums all that a question asks for. */
  askUsageTotals: askUsageTotals.bind(undefined, clickhouse),
  askUnits: askUnits.bind(undefined, clickhouse),
  /** Sums all units that a question asks for; undefined for several units. */
  askUnitTotals: askUnitTotals.bind(undefined, clickhouse),
  askOutcomes: askOutcomes.bind(undefined, clickhouse),
  askUtilization: askUtilization.bind(undefined, clickhouse),
  /** Opens the whole answer to a question as a stream. */
  openStream: (reach: Reach, question: StreamQuestion, signal: AbortSignal) =>
    openUsageStream(streams, reach, question, signal),
  /** Reads how far the rows of one kind are complete, before they are read. */
  askCompleteness: (rows: Rows) => readCompleteness(clickhouse, topics[rows]),
  /** Reads what of one kind is missing for good in a span of time. */
  readGaps: (rows: Rows, span: Period) => readGaps(clickhouse, topics[rows], span),
})
/** What the rollups answer. */
export type UsageSource = ReturnType<typeof openUsageSource>
