import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { freePorts } from '@weir/runtime/ports.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { Redis } from 'ioredis'
import { type RedisProcess, startFamily } from './redis-process.ts'

export type ClusterSetup = Awaited<ReturnType<typeof startCluster>>

export interface ClusterNode extends RedisProcess {
  /** Its id within the Cluster. */
  readonly id: string
  /** A plain connection to it. */
  readonly redis: Redis
}

const mastersCount = 3
const run = promisify(execFile)

/** The settings of a node; its bus has the port that is free beside its own. */
export const nodeLines = ({ port, busPort, timeoutMs }: { port: number; busPort: number; timeoutMs: number }) => [
  `port ${port}`,
  `cluster-port ${busPort}`,
  'bind 127.0.0.1',
  'cluster-enabled yes',
  `cluster-node-timeout ${timeoutMs}`,
  'repl-diskless-sync-delay 0',
]

const connectTo = (port: number): Redis => {
  const redis = new Redis({ port, host: '127.0.0.1', protocol: 2 })
  redis.on('error', () => undefined)
  return redis
}

/** Makes one Cluster of running nodes, the first three of them its masters, and waits until it is whole. */
export async function joinNodes(ports: readonly number[]): Promise<void> {
  const hosts = ports.map((port) => `127.0.0.1:${port}`)
  const replicas = String(ports.length / mastersCount - 1)
  await run('redis-cli', ['--cluster', 'create', ...hosts, '--cluster-replicas', replicas, '--cluster-yes'])
  const nodes = ports.map(connectTo)
  const isWhole = async () => {
    const infos = await Promise.all(nodes.map((redis) => redis.cluster('INFO')))
    const links = await Promise.all(nodes.slice(mastersCount).map((redis) => redis.info('replication')))
    return (
      infos.every((info) => String(info).includes('cluster_state:ok')) &&
      links.every((link) => link.includes('master_link_status:up'))
    )
  }
  const whole = await waitUntil(isWhole, { deadlineMs: 20_000 })
  for (const redis of nodes) redis.disconnect()
  if (whole !== true) throw new Error('the Cluster did not come up')
}

/** The id and the port of the node that holds the slot, in what `CLUSTER NODES` answers. */
export function holderIn(answer: string, slot: number): { readonly id: string; readonly port: number } | undefined {
  const isWithin = ([first, last = first]: string[]) => Number(first) <= slot && slot <= Number(last)
  const [id = '', address = ''] =
    answer
      .split('\n')
      .map((line) => line.split(' '))
      // Ranges and single slots stand behind the node's facts.
      .find((facts) => facts.slice(8).some((range) => isWithin(range.split('-')))) ?? []
  return id === '' ? undefined : { id, port: Number(/:(\d+)@/.exec(address)?.[1]) }
}

/** Three masters over all slots, each with so many replicas. */
export async function startCluster({ replicas = 0 } = {}) {
  const count = mastersCount * (1 + replicas)
  const ports = await freePorts(2 * count)
  const family = await startFamily('cluster')
  const started = await Promise.all(
    ports
      .slice(0, count)
      .map((port, at) => family.start(port, nodeLines({ port, busPort: ports[count + at] ?? 0, timeoutMs: 1_000 }))),
  )
  await joinNodes(started.map(({ port }) => port))
  const hosts = started.map(({ port }) => `127.0.0.1:${port}`)
  const nodes = await Promise.all(
    started.map(async (one): Promise<ClusterNode> => {
      const redis = connectTo(one.port)
      return { ...one, redis, id: String(await redis.cluster('MYID')) }
    }),
  )
  return {
    /** `redis+cluster://…`, naming one node alone. */
    url: `redis+cluster://${hosts[0]}`,
    /** The same, naming all: a process that starts needs one of them that lives. */
    urlOfAll: `redis+cluster://${hosts.join(',')}`,
    /** The masters at the start, then their replicas. */
    nodes,
    /** The master that holds the slot. */
    async holderOf(slot: number) {
      // One that was just killed may look connected, and would answer once it is started again.
      const connected = nodes.filter(({ redis }) => redis.status === 'ready')
      const holder = holderIn(String(await Promise.any(connected.map(({ redis }) => redis.cluster('NODES')))), slot)
      const node = nodes.find(({ id }) => id === holder?.id)
      if (node === undefined) throw new Error(`nobody holds slot ${slot}`)
      return node
    },
    async close() {
      for (const { redis } of nodes) redis.disconnect()
      await family.close()
    },
  }
}
