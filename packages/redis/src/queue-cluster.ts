import { Cluster, type ClusterNode, type ClusterOptions, type RedisOptions } from 'ioredis'
import type { ServerAddress } from './redis-url.ts'

interface QueueClusterOptions {
  /** Some nodes, which name the others. */
  readonly servers: readonly ServerAddress[]
  /** Of the connection to every node. */
  readonly node: Omit<NonNullable<ClusterOptions['redisOptions']>, 'replyMapping'>
  /** The pause before a Cluster of which no node answers is tried again. */
  readonly retryStrategy: (attempt: number) => number
  /** User, password and certificates, as they are now. */
  readonly credentials: (host: string) => RedisOptions
  /** Called with this connection, and with each duplicate. */
  readonly follow: (cluster: Cluster) => void
}

/**
 * How often it is asked who holds the slots. A master that hangs without closing its connections is replaced by the
 * Cluster; what was sent to it is then sent to the new one within this time.
 */
const slotsAskedEveryMs = 2_000

/**
 * ioredis's own Cluster, which BullMQ can work with: a command waits for a master of its slot, and what was under way
 * is sent again. Every new connection to a node reads user, password and certificates again.
 */
export class QueueCluster extends Cluster {
  readonly #options: QueueClusterOptions

  constructor(options: QueueClusterOptions) {
    const { servers, node, retryStrategy, credentials, follow } = options
    super(
      servers.map(({ host, port }): ClusterNode => ({ host, port })),
      {
        redisOptions: node,
        clusterRetryStrategy: retryStrategy,
        maxRedirections: Number.MAX_SAFE_INTEGER, // each is a pause of 100 ms while a slot has no master
        slotsRefreshInterval: slotsAskedEveryMs,
        enableReadyCheck: false, // it would ask CLUSTER INFO, and again before each command that waits
      },
    )
    this.#options = options
    // ioredis copies the options of nodes once, when it is made.
    const pool = this['connectionPool']
    const create = pool.createRedisFromOptions
    pool.createRedisFromOptions = (where: RedisOptions, isReplica: boolean) =>
      create.call(pool, { ...where, ...credentials(where.host ?? '') }, isReplica)
    // ioredis asks the nodes that it was given when it connects again, and they may be those that are gone.
    const named = this['startupNodes']
    this.on('refresh', () => {
      this['startupNodes'] = [...named, ...this.nodes().map(({ options: { host, port } }) => ({ host, port }))]
    })
    follow(this)
  }

  /** Nodes are asked by duplicates of their connections, and a replica is connected to when it becomes a master. */
  override refreshSlotsCache(...whenDone: Parameters<Cluster['refreshSlotsCache']>): void {
    for (const { options } of this.nodes()) Object.assign(options, this.#options.credentials(options.host ?? ''))
    super.refreshSlotsCache(...whenDone)
  }

  /** BullMQ overrides nothing but what these options have. */
  override duplicate(): never {
    return new QueueCluster(this.#options) as never
  }
}
