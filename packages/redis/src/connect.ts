import { isIP } from 'node:net'
import { backoffMs } from '@weir/runtime/backoff.ts'
import { type Cluster, Redis, type RedisOptions, type SentinelConnectionOptions, SentinelConnector } from 'ioredis'
import { ClusterConnection } from './cluster-connection.ts'
import { withClusterState, withState } from './connection-state.ts'
import type { RedisServers } from './limit-connection.ts'
import { type Login, openLogin, type RedisSource } from './login.ts'
import { QueueCluster } from './queue-cluster.ts'
import { type RedisUse, rightsOf } from './redis-rights.ts'
import type { RedisTlsFiles, ServerAddress } from './redis-url.ts'

/**
 * What a connection is for, which decides what happens to a command when Redis is slow or unreachable.
 *
 * - `limiter`: fails immediately and never sends anything twice; the limit's `onUnavailable` decides instead.
 * - `claims`: fails within seconds and never sends anything twice; the caller repeats its whole step.
 * - `queue`: waits for Redis to come back, and sends again what was under way, as BullMQ needs.
 */
export type RedisRole = 'limiter' | 'claims' | 'queue'

interface ConnectOptions {
  readonly role: RedisRole
  /** Called with a sentence about a failed connection or a missing right; the same one at most once a minute. */
  readonly onError: (error: Error) => void
  /** For TLS only; none where it is left out. */
  readonly tls?: RedisTlsFiles | undefined
  /** What it is used for, whose rights are then looked after; nothing of that where it is left out. */
  readonly use?: RedisUse
}

/** The first pause before a reconnect; a server that restarts on the same machine is back about then. */
const reconnectFirstMs = 50

const backOff = (maxMs: number) => (attempt: number) => backoffMs(attempt, { firstMs: reconnectFirstMs, maxMs })

/**
 * After a failover the old master answers READONLY for good; a new connection finds the new one. NOAUTH ends with the
 * next login. The command is not repeated.
 */
const endsConnection = (error: Error) => /^(?:READONLY|NOAUTH)/.test(error.message)

/** RESP2 everywhere: nothing here needs RESP3's types, and some proxies refuse its HELLO. */
const shared = { protocol: 2, autoResendUnfulfilledCommands: false } as const

type RoleOptions = Omit<RedisOptions, 'replyMapping'>
type RoleDefaults = RoleOptions & { readonly retryStrategy: (attempt: number) => number }

const roles: Readonly<Record<RedisRole, RoleDefaults>> = {
  limiter: {
    ...shared,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 1_000, // a data centre's handshake takes milliseconds
    socketTimeout: 1_000, // a sent command unanswered this long: the connection is dead, or Redis is
    retryStrategy: backOff(1_000), // at most this long unserved after Redis is back
    maxLoadingRetryTime: 500, // how often a Redis that reads its data is asked whether it is done
  },
  claims: {
    ...shared,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 2_000,
    commandTimeout: 2_000, // claims are not on a request's path, but hold up a batch
    socketTimeout: 2_000, // a new connection finds a new master; a hanging server would keep the old one for good
    retryStrategy: backOff(2_000),
  },
  queue: {
    ...shared,
    maxRetriesPerRequest: null, // BullMQ refuses anything else for its blocking reads
    // Its scripts may be run again; a command that never settles would end its loops for good.
    autoResendUnfulfilledCommands: true,
    connectTimeout: 5_000,
    retryStrategy: backOff(5_000),
  },
}

function credentialsFor(host: string | undefined, { login }: Login): RoleOptions {
  const servername = host === undefined || isIP(host) ? undefined : host
  const { tls, ...user } = login()
  return { ...user, ...(tls === undefined ? {} : { tls: { ...tls, servername } }) } as RoleOptions
}

const stateOf = ({ address, variable }: Login, { use, onError }: ConnectOptions) => ({
  address,
  variable,
  onError,
  rights: use === undefined ? '' : rightsOf(use, address.kind),
})

/**
 * A server with several names chooses its certificate by the name that the client asks for (SNI), which Node does not
 * send by itself. Every new connection reads user, password and certificates again. ioredis calls its strategies before
 * each, as methods of the options that it then connects with, also those of a duplicate, which is how BullMQ opens its
 * connections.
 */
function open(where: RoleOptions, login: Login, options: ConnectOptions, onMoved = () => {}): Redis {
  const { retryStrategy, ...rest } = roles[options.role]
  const credentials = () => credentialsFor(where.host, login)
  return withState(stateOf(login, options), (state) => {
    return new Redis({
      ...rest,
      ...where,
      ...credentials(),
      retryStrategy(this: RoleOptions, attempt: number) {
        Object.assign(this, credentials())
        return retryStrategy(attempt)
      },
      reconnectOnError(error) {
        state.answered(error)
        if (error.message.startsWith('MOVED')) onMoved()
        return endsConnection(error)
      },
    })
  })
}

const connectSingle = (server: ServerAddress, login: Login, options: ConnectOptions, onMoved?: () => void): Redis =>
  open({ host: server.host, port: server.port, db: login.address.db }, login, options, onMoved)

/** Sentinels are asked without credentials, and name the master again at every reconnect. */
function connectSentinel(login: Login, options: ConnectOptions): Redis {
  const { servers, masterName, db, isTls } = login.address
  const ofSentinels = () => {
    const { tls } = login.login()
    return tls === undefined ? {} : { tls, sentinelTLS: tls }
  }
  const again = backOff(1_000)
  const againForNews = backOff(5_000)
  const where: RoleOptions = {
    sentinels: servers.map(({ host, port }) => ({ host, port })),
    name: masterName,
    db,
    sentinelRetryStrategy(this: RoleOptions, attempt: number) {
      Object.assign(this, ofSentinels())
      return again(attempt)
    },
    sentinelCommandTimeout: 1_000, // one that hangs must not keep us from asking the next
    // Sentinels report a new master: otherwise a hanging master would be used as long as it answers anything.
    failoverDetector: true,
    Connector: SteadySentinelConnector,
    sentinelReconnectStrategy(this: RoleOptions, attempt: number) {
      Object.assign(this, ofSentinels())
      return againForNews(attempt)
    },
    ...ofSentinels(),
    enableTLSForSentinelMode: isTls,
  }
  return open(where, login, options)
}

/** Opens a connection to one server, or to the master that Sentinels name. It keeps reconnecting until it is closed. */
export function connectRedis(source: RedisSource, options: ConnectOptions): Redis {
  const login = openLogin(source, options)
  const { kind, servers } = login.address
  const [server] = servers
  if (kind === 'sentinel') return connectSentinel(login, options)
  if (kind === 'cluster' || server === undefined) throw new Error('a Cluster is not supported: name a single Redis')
  return connectSingle(server, login, options)
}

/** Opens one Redis, or the masters of a Cluster, between which the sender chooses by the key. */
function connectServers(source: RedisSource, options: ConnectOptions): RedisServers {
  const login = openLogin(source, options)
  const { kind, servers } = login.address
  if (kind !== 'cluster') return connectRedis(source, options)
  const cluster: ClusterConnection = new ClusterConnection(servers, (server) =>
    connectSingle(server, login, options, () => cluster.refresh()),
  )
  return cluster
}

type OfRole = Omit<ConnectOptions, 'role'>

/** Opens what decisions are made by, however Redis is run. */
export const connectLimiter = (source: RedisSource, options: OfRole): RedisServers =>
  connectServers(source, { ...options, role: 'limiter' })

/** Opens what claims are made in, however Redis is run. */
export const connectClaims = (source: RedisSource, options: OfRole): RedisServers =>
  connectServers(source, { ...options, role: 'claims' })

/** Opens what BullMQ works with, however Redis is run. On a Cluster all keys of a queue need one hash tag. */
export function connectQueue(source: RedisSource, options: OfRole): Redis | Cluster {
  const queue: ConnectOptions = { ...options, role: 'queue' }
  const login = openLogin(source, queue)
  const { kind, servers } = login.address
  if (kind !== 'cluster') return connectRedis(source, queue)
  const { retryStrategy, ...rest } = roles.queue
  return withClusterState(stateOf(login, queue), (state) => {
    const reconnectOnError = (error: Error) => {
      state.answered(error)
      return endsConnection(error)
    }
    const credentials = (host: string) => credentialsFor(host, login)
    const follow = (cluster: Cluster) => state.followCluster(cluster)
    return new QueueCluster({ servers, node: { ...rest, reconnectOnError }, retryStrategy, credentials, follow })
  })
}

/**
 * Asks Sentinels for the master, and goes on asking while they fail over.
 *
 * ioredis 6.0 keeps the subscriptions of a lost connection while it looks for the next master. What they then
 * say about the failover ends that attempt as if the connection had been closed by its owner, and no other follows. It
 * also keeps to itself that a Sentinel refuses a subscription: the connection's own `reconnectOnError` is handed what
 * Sentinels refuse.
 */
class SteadySentinelConnector extends SentinelConnector {
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
