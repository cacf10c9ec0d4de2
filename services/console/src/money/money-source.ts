import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { topics } from '@weir/contracts/topics.ts'
import { type PolicyAt, readFormerPolicies } from '@weir/policy-changes/history-queries.ts'
import { askExport, askMonthUsage, askPeriodUsage, readCountedOffsets } from './billing-queries.ts'

/** What spend and exports are made of. Every method rejects when ClickHouse does not answer. */
export const openMoneySource = (clickhouse: ClickHouseClient) => ({
  /** Reads what a subject's allowed decisions used in a period, by route. */
  askPeriodUsage: askPeriodUsage.bind(undefined, clickhouse),
  /** The same of every subject. */
  askMonthUsage: askMonthUsage.bind(undefined, clickhouse),
  askExport: askExport.bind(undefined, clickhouse),
  /** The last record of each partition, of those since a time. */
  readCountedOffsets: readCountedOffsets.bind(undefined, clickhouse),
  /** The policies just before subjects were deleted, of those that were. */
  readFormerPolicies: (subjects: readonly string[]): Promise<ReadonlyMap<string, Pick<PolicyAt, 'entities'>>> =>
    readFormerPolicies(clickhouse, topics.policy, subjects),
})
/** What spend and exports are made of. */
export type MoneySource = ReturnType<typeof openMoneySource>
