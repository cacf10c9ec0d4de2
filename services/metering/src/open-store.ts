import { type ClickHouseClient, clickhouseReadiness, connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { connectReplicas } from '@weir/clickhouse/connect-replicas.ts'
import type { ClickhouseServer } from '@weir/clickhouse/variables.ts'
import type { Readiness } from '@weir/runtime/ops-server.ts'
import type { UsageStore } from './ports.ts'
import { shardOfReplicas, storeOfShards } from './replica-store.ts'
import { createUsageStore } from './usage-store.ts'

/** The servers that metering inserts into. */
export interface OpenStore {
  readonly store: UsageStore
  readiness(): Promise<Readiness>
  close(): Promise<void>
}

/** How long a request may take, and how long of it the server may work on an insert. */
interface StoreTimes {
  readonly requestMs: number
  readonly insertMs: number
}

async function shardName(client: ClickHouseClient): Promise<string> {
  const [row] = await readRows<{ shard: string }>(client, "SELECT getMacro('shard') AS shard")
  if (row === undefined) throw new Error('ClickHouse gave no row')
  return row.shard
}

/** A shard works while one of its replicas does; the others are a warning. */
async function shardReadiness(replicas: readonly ClickHouseClient[]): Promise<Readiness> {
  const found = await Promise.all(replicas.map(clickhouseReadiness))
  const missing = found.filter((one) => typeof one === 'string')
  if (missing.length === found.length) return missing.join('; ')
  const warnings = found.flatMap((one) => (typeof one === 'object' ? [one.warning] : (one ?? [])))
  return warnings.length === 0 ? undefined : { warning: warnings.join('; ') }
}

function openServer(server: ClickhouseServer, { requestMs, insertMs }: StoreTimes): OpenStore {
  const client = connectClickhouse(server, 'weir-metering', requestMs)
  return {
    store: createUsageStore(client, insertMs),
    readiness: () => clickhouseReadiness(client),
    close: () => client.close(),
  }
}

function openCluster(server: ClickhouseServer, { requestMs, insertMs }: StoreTimes): OpenStore {
  const shards = connectReplicas(server, 'weir-metering', requestMs)
  const stores = shards.map((replicas) =>
    shardOfReplicas(
      replicas.map((client) => ({ store: createUsageStore(client, insertMs), shardName: () => shardName(client) })),
    ),
  )
  return {
    store: storeOfShards(stores),
    async readiness() {
      const found = await Promise.all(shards.map(shardReadiness))
      const missing = found.filter((one) => typeof one === 'string')
      if (missing.length > 0) return missing.join('; ')
      return found.find((one) => one !== undefined)
    },
    close: async () => void (await Promise.all(shards.flat().map((client) => client.close()))),
  }
}

/** Opens the one server of the configuration, or every replica of every shard of its cluster. */
export const openStore = (server: ClickhouseServer, times: StoreTimes): OpenStore =>
  server.clickhouseCluster === '' ? openServer(server, times) : openCluster(server, times)
