import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { insertBlock, isDataError, isInsertRunning } from '@weir/clickhouse/insert.ts'
import { readLastOffset, readNumbers } from '@weir/clickhouse/number-queries.ts'
import { hasRowsOf, isDoubtfulSince, repairBlock } from '@weir/clickhouse/repair/repair-block.ts'
import type { UsageStore } from './ports.ts'

/** Beyond every offset. */
const endless = 2n ** 62n

/** How far the clocks of producers and of ClickHouse may differ before a restart, or a changed view, is overlooked. */
const clockOffMsMax = 300_000

/**
 * ClickHouse as metering uses it. `insertMs`: how long the server may work on one insert. `clockOffMs` is given by
 * tests.
 */
export function createUsageStore(client: ClickHouseClient, insertMs: number, clockOffMs = clockOffMsMax): UsageStore {
  return {
    async insert(request, signal) {
      try {
        await insertBlock(client, { ...request, serverMsMax: insertMs, signal })
        return undefined
      } catch (error) {
        if (error instanceof Error && isDataError(error)) return error
        throw error
      }
    },
    isInsertRunning: (dedupToken) => isInsertRunning(client, dedupToken),
    numbersBefore: (partition, offset) => readNumbers(client, partition, offset ?? endless),
    hasRows: (block) => hasRowsOf(client, block),
    async repair(block, options) {
      if (!options.isForced && !(await isDoubtfulSince(client, block.timestampMs - clockOffMs))) return undefined
      return repairBlock(client, block, options)
    },
    lastInserted: (partition) => readLastOffset(client, partition),
  }
}
