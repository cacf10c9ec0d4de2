import { type RedisOptions, type SentinelConnectionOptions, SentinelConnector } from 'ioredis'

/**
 * Asks Sentinels for the master, and goes on asking while they fail over.
 *
 * ioredis 6.0 keeps the subscriptions of a lost connection while it looks for the next master. What they then
 * say about the failover ends that attempt as if the connection had been closed by its owner, and no other follows. It
 * also keeps to itself that a Sentinel refuses a subscription: the connection's own `reconnectOnError` is handed what
 * Sentinels refuse.
 */
export class SteadySentinelConnector extends SentinelConnector {
  /** ioredis hands every connector the connection's own options, and types them as unknown. */
  constructor(options: unknown) {
    super(options as SentinelConnectionOptions)
    const { reconnectOnError } = options as RedisOptions
    const connect = this['connectToSentinel']
    this['connectToSentinel'] = (endpoint: unknown, more: object) =>
      connect.call(this, endpoint, { ...more, reconnectOnError })
  }

  override connect(...told: Parameters<SentinelConnector['connect']>): ReturnType<SentinelConnector['connect']> {
    this.disconnect() // the lost connection, and with it its subscriptions
    return super.connect(...told)
  }
}
