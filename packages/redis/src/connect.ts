import { Redis, type RedisOptions } from 'ioredis'

/**
 * What a connection is for, which decides what becomes of a command when Redis is slow or gone.
 *
 * - `limiter`: fails at once and never sends anything twice; the limit's `onUnavailable` decides instead.
 * - `claims`: fails within seconds and never sends anything twice; the caller repeats its whole step.
 * - `queue`: waits for Redis to come back, as BullMQ needs.
 */
export type RedisRole = 'limiter' | 'claims' | 'queue'

/** Back-off starts here and doubles up to the role's cap; half of it is jitter, so that processes do not come back as one. */
const reconnectMsMin = 50

function backOff(capMs: number): (attempt: number) => number {
  return (attempt) => {
    const delayMs = Math.min(capMs, reconnectMsMin * 2 ** Math.min(attempt - 1, 10))
    return Math.round(delayMs * (0.5 + Math.random() / 2))
  }
}

/** After a failover the old master answers READONLY for good; a new connection finds the new one. The command is not repeated. */
const reconnectOnError = (error: Error) => error.message.startsWith('READONLY')

/** RESP2 everywhere: nothing here needs RESP3's types, and some proxies refuse its HELLO. */
const shared = { protocol: 2, autoResendUnfulfilledCommands: false } as const

const roles: Readonly<Record<RedisRole, Omit<RedisOptions, 'replyMapping'>>> = {
  limiter: {
    ...shared,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 1_000, // a data centre's handshake takes milliseconds
    socketTimeout: 1_000, // a sent command unanswered this long: the connection is dead, or Redis is
    retryStrategy: backOff(1_000), // at most this long unserved after Redis is back
    reconnectOnError,
  },
  claims: {
    ...shared,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 2_000,
    commandTimeout: 2_000, // claims are not on a request's path, but hold up a batch
    retryStrategy: backOff(2_000),
    reconnectOnError,
  },
  queue: {
    ...shared,
    maxRetriesPerRequest: null, // BullMQ refuses anything else for its blocking reads
    connectTimeout: 5_000,
    retryStrategy: backOff(5_000),
  },
}

/**
 * Opens a connection that keeps reconnecting until it is closed. `onError` hears every connection error, which may be many
 * while Redis is gone; without a listener one of them would end the process.
 */
export function connectRedis(
  url: string,
  { role, onError }: { readonly role: RedisRole; readonly onError: (error: Error) => void },
): Redis {
  const redis = new Redis(url, roles[role])
  redis.on('error', onError)
  return redis
}
