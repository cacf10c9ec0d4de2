import { catchUp } from '@weir/clickhouse/catch-up.ts'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { insertBlock, isDataError, isInsertRunning } from '@weir/clickhouse/insert.ts'
import { readLastOffset, readNumbers } from '@weir/clickhouse/number-queries.ts'
import { refuseDistributed } from '@weir/clickhouse/own-tables.ts'
import { hasRowsOf, isDoubtfulSince, repairBlock } from '@weir/clickhouse/repair/repair-block.ts'
import type { UsageStore } from './ports.ts'

/** Beyond every offset. */
const endless = 2n ** 62n

/** How far the clocks of producers and of ClickHouse may differ before a restart, or a changed view, is overlooked. */
const clockOffMsMax = 300_000

/** The tables by which a partition's start, and a block's rows, are found. */
const tablesOfStart = ['numbers', 'decisions', 'outcomes']

/**
 * ClickHouse as metering uses it: a server by itself, or one replica of a shard. `insertMs`: how long the server may
 * work on one insert. `clockOffMs` is given by tests.
 */
export function createUsageStore(client: ClickHouseClient, insertMs: number, clockOffMs = clockOffMsMax): UsageStore {
  let areOwnTables = client.cluster !== undefined
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
    async numbersBefore(partition, offset) {
      await catchUp(client, tablesOfStart)
      return readNumbers(client, partition, offset ?? endless)
    },
    async hasRows(block) {
      await catchUp(client, tablesOfStart)
      return hasRowsOf(client, block)
    },
    async repair(block, options) {
      // A replica does not know what another one has answered: what was sent again is compared.
      const isCertain = client.cluster === undefined && !options.isForced
      if (isCertain && !(await isDoubtfulSince(client, block.timestampMs - clockOffMs))) return undefined
      return repairBlock(client, block, options)
    },
    async lastInserted(partition) {
      await catchUp(client, tablesOfStart)
      const last = await readLastOffset(client, partition)
      // Once is enough, after the tables were there.
      if (!areOwnTables) await refuseDistributed(client)
      areOwnTables = true
      return last
    },
  }
}
