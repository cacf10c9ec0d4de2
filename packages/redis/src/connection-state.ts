import { setTimeout as delay } from 'node:timers/promises'
import type { Cluster, Redis } from 'ioredis'
import { LRUCache } from 'lru-cache'
import { isOfSentinel, isRightsError, lackedRights, rightOf } from './redis-rights.ts'
import type { RedisAddress } from './redis-url.ts'

/** A right that is given back is found within this time. */
const lookEveryMs = 1_000
/** A fault that lasts is reported again after this time. */
const reportedAgainMs = 60_000
/** There are fewer sentences; an error's own words may hold a time or an address. */
const reportedMax = 64

interface StateOptions {
  readonly address: RedisAddress
  /** The variable that holds the address, for messages. */
  readonly variable: string
  /** What its user must be allowed; empty to ask for nothing. */
  readonly rights: string
  readonly onError: (error: Error) => void
}

/** What an operator has to know of a connection, and of its duplicates. */
class ConnectionState {
  readonly #options: StateOptions
  /** The servers that it is connected to: one, or a Cluster's masters. */
  readonly #servers: () => readonly Redis[]
  #fault = ''
  /** The sentences that were reported within the last minute. */
  readonly #reported = new LRUCache<string, true>({ max: reportedMax, ttl: reportedAgainMs })
  /** Which right Sentinels refused for this connection: it then learns late of another master, or not at all. */
  #ofSentinels: string | undefined
  #isAsking = false

  constructor(servers: () => readonly Redis[], options: StateOptions) {
    this.#servers = servers
    this.#options = options
  }

  /** Why the connection does not stand, in a sentence; empty when it does. */
  get fault(): string {
    return this.#fault || (this.#ofSentinels ?? '')
  }

  /** What Sentinels refused; said until the next connection asks them again. */
  get ofSentinels(): string | undefined {
    return this.#ofSentinels
  }

  follow(redis: Redis): void {
    const { kind, masterName } = this.#options.address
    const where = kind === 'sentinel' ? masterName : `${redis.options.host}:${redis.options.port}`
    /** A connection stands on which Redis has not answered. */
    let isOpening = false
    const failed = (error: Error) => {
      this.#failed(error, where, isOpening)
      isOpening = false
    }
    redis.on('error', failed)
    redis.on('connecting', () => {
      this.#ofSentinels = undefined
    })
    redis.on('connect', () => {
      isOpening = true
    })
    redis.on('ready', () => {
      isOpening = false
      this.#fault = ''
    })
    redis.on('close', () => {
      if (isOpening) failed(new Error('closed without an answer'))
    })
  }

  /** The Cluster goes on without a node that it reports. */
  followCluster(cluster: Cluster): void {
    cluster.on('error', () => undefined) // says only that no node is left, each of which it has reported
    cluster.on('node error', (error: Error, where: string) => this.#failed(error, where, cluster.status !== 'ready'))
    cluster.on('ready', () => {
      this.#fault = ''
    })
  }

  /** Which rights its user lacks, in a sentence; undefined when it lacks none, or when Redis does not say. */
  async lacking(said = ''): Promise<string | undefined> {
    const { rights, variable } = this.#options
    if (rights === '') return undefined
    const ready = this.#servers().filter(({ status }) => status === 'ready')
    const lacked = ready.map((redis) =>
      lackedRights(redis, rights).catch((error: Error) => (isRightsError(error) ? [rightOf(error)] : [])),
    )
    const found = (await Promise.all(lacked)).find(({ length }) => length > 0)
    return found && `Redis: the user of ${variable} lacks ${found.join(' ')}${said}`
  }

  /** Redis answered a command with an error. ioredis hands every one to `reconnectOnError`, those of duplicates too. */
  answered(error: Error): void {
    if (!isRightsError(error)) return
    const said = ` (${error.message})`
    if (isOfSentinel(error)) {
      const { variable } = this.#options
      this.#ofSentinels = `The Sentinels of ${variable}: their user default lacks ${rightOf(error)}${said}`
      this.#report(this.#ofSentinels)
    }
    if (this.#isAsking || isOfSentinel(error)) return
    this.#isAsking = true
    void this.lacking(said).then((lacking) => {
      this.#isAsking = false
      this.#report(lacking ?? `Redis: the user of ${this.#options.variable} lacks ${rightOf(error)}${said}`)
    })
  }

  #failed(error: Error, where: string, isHandshake: boolean): void {
    const { address, variable } = this.#options
    this.#fault = explainFault(error, { ...address, variable, where, isHandshake })
    this.#report(this.#fault)
  }

  #report(text: string): void {
    if (this.#reported.has(text)) return
    this.#reported.set(text, true)
    this.#options.onError(new Error(text))
  }
}

const states = new WeakMap<Redis | Cluster, ConnectionState>()

/** Has `create` make the connection with the state that it belongs to, and follows it. */
export function withState(options: StateOptions, create: (state: ConnectionState) => Redis): Redis {
  const state: ConnectionState = new ConnectionState(() => [redis], options)
  const redis = create(state)
  states.set(redis, state)
  state.follow(redis)
  return redis
}

/** The same for a Cluster, whose nodes come and go; `create` has each duplicate followed as well. */
export function withClusterState(options: StateOptions, create: (state: ConnectionState) => Cluster): Cluster {
  const state: ConnectionState = new ConnectionState(() => cluster.nodes('master'), options)
  const cluster = create(state)
  states.set(cluster, state)
  return cluster
}

/** Why the connection does not stand, in a sentence; empty when it does. */
export const faultOf = (redis: Redis | Cluster): string => states.get(redis)?.fault ?? ''

/** Which documented rights the connection's user lacks, or Sentinels refuse it, in a sentence. */
export async function lackingOf(redis: Redis): Promise<string | undefined> {
  const state = states.get(redis)
  return (await state?.lacking()) ?? state?.ofSentinels
}

/** Why the connection cannot be worked with, in a sentence: for readiness. */
export async function redisProblem(redis: Redis | Cluster): Promise<string | undefined> {
  if (redis.status !== 'ready') return `the connection is ${redis.status}. ${faultOf(redis)}`.trim()
  return await states.get(redis)?.lacking()
}

/** Waits while Redis answers and its user lacks rights; for a Redis that cannot be reached, for one second. */
export async function untilAllowed(redis: Redis | Cluster, stopping: AbortSignal): Promise<void> {
  const pause = () => delay(lookEveryMs, undefined, { signal: stopping }).catch(() => undefined)
  if (redis.status !== 'ready') await Promise.race([new Promise((resolve) => redis.once('ready', resolve)), pause()])
  while (!stopping.aborted && (await states.get(redis)?.lacking()) !== undefined) await pause()
}

/** Where an error comes from. */
interface FaultContext {
  /** host:port, or the master's name. */
  readonly where: string
  /** The variable that holds the address. */
  readonly variable: string
  readonly username: string
  readonly isTls: boolean
  /** The connection stands, and Redis has not answered on it yet. */
  readonly isHandshake: boolean
}

/** From an error's words to what an operator looks at. Words in capitals are filled in; SAID is the error itself. */
const explanations: readonly (readonly [RegExp, string])[] = [
  [/WRONGPASS|NOAUTH|invalid password/, ' refuses the user USER (SAID): see VARIABLE'],
  [/self-signed|unable to (?:get|verify)/, ': its certificate is not from a CA that WEIR_REDIS_TLS_CA holds (SAID)'],
  [/altnames/, ': its certificate is not for the host name in VARIABLE (SAID)'],
  [/certificate (?:has expired|is not yet valid)/, ': its certificate has expired or is not valid yet (SAID)'],
  [/certificate required/, ' requires a client certificate (SAID): set WEIR_REDIS_TLS_CERT and WEIR_REDIS_TLS_KEY'],
  [/alert |handshake failure/, ' does not accept the certificate of WEIR_REDIS_TLS_CERT (SAID)'],
  [/wrong version number/, ' speaks no TLS (SAID): VARIABLE must begin with redis instead of rediss'],
  [/ENOTFOUND|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN/, ' cannot be reached (SAID): see VARIABLE'],
]

const ended = /ECONNRESET|EPIPE|closed|Protocol error/

function explanationFor(said: string, { isTls, isHandshake }: FaultContext): string {
  if (isHandshake && ended.test(said)) {
    return isTls
      ? ' ends new connections (SAID): if it wants a client certificate, see WEIR_REDIS_TLS_CERT'
      : ' ends new connections (SAID): if it speaks TLS, VARIABLE must begin with rediss instead of redis'
  }
  const found = explanations.find(([words]) => words.test(said))?.[1]
  if (found !== undefined) return found
  if (!/ETIMEDOUT/.test(said)) return ': SAID'
  return ` does not answer (SAID): see VARIABLE${isTls ? ', which must begin with redis if it speaks no TLS' : ''}`
}

/** Explains an error of a connection: what failed, and which variable to check. Never repeats a password. */
function explainFault({ message }: Error, context: FaultContext): string {
  const ofSentinels = /^All sentinels are unreachable.*?(?:Last error: (.*))?$/s.exec(message)
  const words = ofSentinels === null ? message : (ofSentinels[1] ?? 'none answers')
  // OpenSSL's own words: `…:SSL routines:FUNCTION:WORDS:FILE:LINE:…`.
  const said = /SSL routines:[^:]*:([^:]+)/.exec(words)?.[1] ?? words.trim()
  const isUnknown = ofSentinels !== null && /NOAUTH/.test(said)
  const text = isUnknown ? ' need a password (SAID), but none is set' : explanationFor(said, context)
  const server = ofSentinels === null ? `Redis at ${context.where}` : `The Sentinels of ${context.where}`
  return `${server}${text}`
    .replace('VARIABLE', context.variable)
    .replace('USER', context.username || 'default')
    .replace('SAID', () => said)
}
