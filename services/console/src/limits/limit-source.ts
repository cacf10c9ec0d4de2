import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { changeLimits, createLimitAdmin, liftBlock } from '@weir/redis/limit-admin.ts'
import { peekLimits } from '@weir/redis/limits-now.ts'
import type { QuotaServers } from '@weir/redis/quota-counts.ts'
import { createStandingBlocks } from '@weir/redis/standing-blocks.ts'
import { readBlocks } from './block-queries.ts'

/** Counts and blocks. Every method rejects when Redis or ClickHouse does not answer. */
export function openLimitSource(clickhouse: ClickHouseClient, servers: QuotaServers) {
  const admin = createLimitAdmin(servers.serverOf)
  return {
    peek: peekLimits.bind(undefined, admin),
    changeCounts: changeLimits.bind(undefined, admin),
    blocks: {
      ...createStandingBlocks(servers),
      read: readBlocks.bind(undefined, clickhouse),
      lift: liftBlock.bind(undefined, admin),
    },
  }
}
/** Counts and blocks. */
export type LimitSource = ReturnType<typeof openLimitSource>
