import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { insertBlock, isDataError } from '@weir/clickhouse/insert.ts'
import type { UsageStore } from './ports.ts'

/** Inserts into the raw table; the rollups follow by their views, in the same insert. */
export function createUsageStore(client: ClickHouseClient): UsageStore {
  return {
    async insert({ lines, token }) {
      try {
        await insertBlock(client, { table: 'weir.decisions', lines, token })
        return { kind: 'inserted' }
      } catch (thrown) {
        const error = thrown instanceof Error ? thrown : new Error(String(thrown))
        return { kind: isDataError(error) ? 'unreadable' : 'unavailable', error }
      }
    },
  }
}
