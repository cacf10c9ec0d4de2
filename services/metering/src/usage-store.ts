import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { insertBlock, isDataError, isInserting } from '@weir/clickhouse/insert.ts'
import { readLastOffset, readNumbers } from '@weir/clickhouse/number-queries.ts'
import { repairBlock, startedAfter } from '@weir/clickhouse/repair/repair-block.ts'
import type { UsageStore } from './ports.ts'

/** Beyond every offset. */
const endless = 2n ** 62n

/** By so much the clocks of producers and of ClickHouse may differ before a restart is overlooked. */
const clockOffMsMax = 300_000

/** ClickHouse as metering uses it. `insertMs`: how long the server may work on one insert. */
export function createUsageStore(client: ClickHouseClient, insertMs: number): UsageStore {
  return {
    async insert(block, signal) {
      try {
        await insertBlock(client, { ...block, serverMsMax: insertMs, signal })
        return { kind: 'inserted' }
      } catch (thrown) {
        const error = thrown instanceof Error ? thrown : new Error(String(thrown))
        return { kind: isDataError(error) ? 'unreadable' : 'unavailable', error }
      }
    },
    isInserting: (token) => isInserting(client, token),
    numbersBefore: (life, offset) => readNumbers(client, life, offset ?? endless),
    async repair(block, options) {
      if (!(await startedAfter(client, block.timestampMs - clockOffMsMax))) return undefined
      return repairBlock(client, block, options)
    },
    lastInserted: (life) => readLastOffset(client, life),
  }
}
