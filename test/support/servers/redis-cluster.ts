import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { freePorts } from '@weir/runtime/ports.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { Redis } from 'ioredis'
import { type RedisProcess, startFamily } from './redis-process.ts'

export interface ClusterSetup {
  /** `redis+cluster://…`, naming one node alone. */
  readonly url: string
  readonly nodes: readonly ClusterNode[]
  /** The master that holds the slot. */
  holderOf(slot: number): Promise<ClusterNode>
  close(): Promise<void>
}

export interface ClusterNode extends RedisProcess {
  /** Its id within the Cluster. */
  readonly id: string
  /** A plain connection to it. */
  readonly redis: Redis
}

const mastersCount = 3
const run = promisify(execFile)

/** Three masters over all slots, without replicas; each node's bus has the port that is free beside its own. */
export async function startCluster(): Promise<ClusterSetup> {
  const ports = await freePorts(2 * mastersCount)
  const family = await startFamily('cluster')
  const started = await Promise.all(
    ports
      .slice(0, mastersCount)
      .map((port, at) =>
        family.start(port, [
          `port ${port}`,
          `cluster-port ${ports[mastersCount + at]}`,
          'bind 127.0.0.1',
          'cluster-enabled yes',
          'cluster-node-timeout 1000',
        ]),
      ),
  )
  const hosts = started.map(({ port }) => `127.0.0.1:${port}`)
  await run('redis-cli', ['--cluster', 'create', ...hosts, '--cluster-replicas', '0', '--cluster-yes'])
  const nodes = await Promise.all(
    started.map(async (one): Promise<ClusterNode> => {
      const redis = new Redis({ port: one.port, host: '127.0.0.1', protocol: 2 })
      redis.on('error', () => undefined)
      return { ...one, redis, id: String(await redis.cluster('MYID')) }
    }),
  )
  const isWhole = await waitUntil(
    async () => {
      const infos = await Promise.all(nodes.map(({ redis }) => redis.cluster('INFO')))
      return infos.every((info) => String(info).includes('cluster_state:ok'))
    },
    { deadlineMs: 20_000 },
  )
  if (isWhole !== true) throw new Error('the Cluster did not come up')
  return {
    url: `redis+cluster://${hosts[0]}`,
    nodes,
    async holderOf(slot) {
      const lines = String(await nodes[0]?.redis.cluster('NODES')).split('\n')
      const isWithin = ([first, last = first]: string[]) => Number(first) <= slot && slot <= Number(last)
      const holds = (line: string) =>
        line
          .split(' ')
          .slice(8) // ranges and single slots stand behind the node's facts
          .some((range) => isWithin(range.split('-')))
      const node = nodes.find(({ id }) => lines.some((line) => line.startsWith(id) && holds(line)))
      if (node === undefined) throw new Error(`nobody holds slot ${slot}`)
      return node
    },
    async close() {
      for (const { redis } of nodes) redis.disconnect()
      await family.close()
    },
  }
}
