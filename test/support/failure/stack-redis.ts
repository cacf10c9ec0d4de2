import { connectRedis } from '@weir/redis/connect.ts'
import { Cluster, type Redis } from 'ioredis'
import type { Stack } from './stack.ts'

/** The Redis of a stack, whose keys a test looks at: one server, or a Cluster. */
export function openStackRedis({ addresses: { redis: url } }: Pick<Stack, 'addresses'>): Redis | Cluster {
  if (!url.startsWith('redis+cluster:')) return connectRedis(url, { role: 'claims', onError: () => undefined })
  const nodes = [...url.matchAll(/([\d.]+):(\d+)/g)].map(([, host = '', port]) => ({ host, port: Number(port) }))
  const cluster = new Cluster(nodes)
  cluster.on('error', () => undefined)
  return cluster
}

/** Every server that holds keys of its own. */
export const mastersOf = (redis: Redis | Cluster): readonly Redis[] =>
  redis instanceof Cluster ? redis.nodes('master') : [redis]
