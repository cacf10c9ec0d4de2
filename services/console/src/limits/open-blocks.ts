import { readBlocks } from '@weir/clickhouse/block-queries.ts'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { createLimitAdmin, liftBlock } from '@weir/redis/limit-admin.ts'
import { type BlockServers, createStandingBlocks } from '@weir/redis/standing-blocks.ts'
import type { BlockPorts } from '../ports.ts'

/** Returns what finds and lifts blocks on these servers. */
export const openBlocks = (clickhouse: ClickHouseClient, servers: BlockServers): BlockPorts => ({
  ...createStandingBlocks(servers),
  read: readBlocks.bind(undefined, clickhouse),
  lift: liftBlock.bind(undefined, createLimitAdmin(servers.serverOf)),
})
