import type { UsageRow } from '@weir/clickhouse/usage-queries.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { UsageQuestion } from '@weir/core/usage/usage-question.ts'

/** What the console asks. Rejects when the rollups cannot be read. */
export interface Ports {
  readonly askUsage: (question: UsageQuestion) => Promise<UsageRow[]>
  readonly clock: Clock
}
