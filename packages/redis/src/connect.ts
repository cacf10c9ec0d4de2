import { readFileSync } from 'node:fs'
import { Redis, type RedisOptions } from 'ioredis'
import { ClusterConnection } from './cluster-connection.ts'
import { parseRedisUrl, type RedisAddress, type ServerAddress } from './redis-url.ts'
import { SteadySentinelConnector } from './steady-sentinel-connector.ts'

/**
 * What a connection is for, which decides what becomes of a command when Redis is slow or gone.
 *
 * - `limiter`: fails at once and never sends anything twice; the limit's `onUnavailable` decides instead.
 * - `claims`: fails within seconds and never sends anything twice; the caller repeats its whole step.
 * - `queue`: waits for Redis to come back, and sends again what was under way, as BullMQ needs.
 */
export type RedisRole = 'limiter' | 'claims' | 'queue'

export interface ConnectOptions {
  readonly role: RedisRole
  /** Hears every connection error, which may be many while Redis is gone; without it one would end the process. */
  readonly onError: (error: Error) => void
  /** Certificates, in PEM, that may have signed the servers'; undefined for those that Node trusts. For TLS only. */
  readonly ca?: string | undefined
}

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

type RoleOptions = Omit<RedisOptions, 'replyMapping'>

const roles: Readonly<Record<RedisRole, RoleOptions>> = {
  limiter: {
    ...shared,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 1_000, // a data centre's handshake takes milliseconds
    socketTimeout: 1_000, // a sent command unanswered this long: the connection is dead, or Redis is
    retryStrategy: backOff(1_000), // at most this long unserved after Redis is back
    maxLoadingRetryTime: 500, // how often a Redis that reads its data is asked whether it is done
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
    // Its scripts may be run again; a command that nobody settles would end its loops for good.
    autoResendUnfulfilledCommands: true,
    connectTimeout: 5_000,
    retryStrategy: backOff(5_000),
    reconnectOnError,
  },
}

type Tls = { readonly ca?: string } | undefined

/** The text of a PEM file, for `ca`; undefined when none is named. */
export const readCertificates = (file: string): string | undefined =>
  file === '' ? undefined : readFileSync(file, 'utf8')

const tlsOf = ({ isTls }: RedisAddress, { ca }: ConnectOptions): Tls =>
  isTls ? (ca === undefined ? {} : { ca }) : undefined

function credentials({ username, password }: RedisAddress): RoleOptions {
  return { ...(username === '' ? {} : { username }), ...(password === '' ? {} : { password }) }
}

function open(options: RoleOptions, { onError }: ConnectOptions): Redis {
  const redis = new Redis(options)
  redis.on('error', onError)
  return redis
}

function connectSingle(address: RedisAddress, server: ServerAddress, options: ConnectOptions): Redis {
  const tls = tlsOf(address, options)
  const where = { host: server.host, port: server.port, db: address.db, ...(tls === undefined ? {} : { tls }) }
  return open({ ...roles[options.role], ...credentials(address), ...where }, options)
}

/** Sentinels are asked without credentials, and name the master again at every reconnect. */
function connectSentinel(address: RedisAddress, options: ConnectOptions): Redis {
  const tls = tlsOf(address, options)
  const where: RoleOptions = {
    sentinels: address.servers.map(({ host, port }) => ({ host, port })),
    name: address.masterName,
    db: address.db,
    sentinelRetryStrategy: backOff(1_000),
    sentinelCommandTimeout: 1_000, // one that hangs must not keep us from asking the next
    // They say when the master changes: without that a master that hangs would be held on to for as long as it answers anything.
    failoverDetector: true,
    Connector: SteadySentinelConnector,
    sentinelReconnectStrategy: backOff(5_000),
    ...(tls === undefined ? {} : { tls, sentinelTLS: tls, enableTLSForSentinelMode: true }),
  }
  return open({ ...roles[options.role], ...credentials(address), ...where }, options)
}

function addressOf(url: string): RedisAddress {
  const parsed = parseRedisUrl(url)
  if ('problem' in parsed) throw new Error(`the address of Redis ${parsed.problem}`)
  return parsed.address
}

/** Opens a connection to one server, or to the master that Sentinels name. It keeps reconnecting until it is closed. */
export function connectRedis(url: string, options: ConnectOptions): Redis {
  const address = addressOf(url)
  const [server] = address.servers
  if (address.kind === 'sentinel') return connectSentinel(address, options)
  if (address.kind === 'cluster' || server === undefined) throw new Error('a Cluster will not do here: name one Redis')
  return connectSingle(address, server, options)
}

/** Opens what decisions are made by, however Redis is run. */
export function connectLimiter(url: string, options: Omit<ConnectOptions, 'role'>): Redis | ClusterConnection {
  const address = addressOf(url)
  const limiter: ConnectOptions = { ...options, role: 'limiter' }
  if (address.kind !== 'cluster') return connectRedis(url, limiter)
  return new ClusterConnection(address.servers, (server) => connectSingle(address, server, limiter))
}
