import { addressesOf } from './addresses.ts'
import { type ClickHouseClient, connectClickhouse } from './connect.ts'
import type { ClickhouseServer } from './variables.ts'

/** Connects to the own tables of every replica of a cluster, by shard. Opens nothing until it is used. */
export const connectReplicas = (
  server: ClickhouseServer,
  application: string,
  requestMs: number,
): ClickHouseClient[][] =>
  addressesOf(server.clickhouseUrl.text).map((replicas) =>
    replicas.map((text) => {
      const clickhouseUrl = { ...server.clickhouseUrl, text }
      return connectClickhouse({ ...server, clickhouseUrl }, application, requestMs, 'local')
    }),
  )
