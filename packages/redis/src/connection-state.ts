import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { LRUCache } from 'lru-cache'
import { explainFault } from './redis-fault.ts'
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
  readonly #redis: () => Redis
  #fault = ''
  /** The sentences that were reported within the last minute. */
  readonly #reported = new LRUCache<string, true>({ max: reportedMax, ttl: reportedAgainMs })
  /** Which right Sentinels refused for this connection: it then learns late of another master, or not at all. */
  #ofSentinels: string | undefined
  /** A connection stands on which Redis has not answered. */
  #isOpening = false
  #isAsking = false

  constructor(redis: () => Redis, options: StateOptions) {
    this.#redis = redis
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
    redis.on('error', (error: Error) => this.#failed(error))
    redis.on('connecting', () => {
      this.#ofSentinels = undefined
    })
    redis.on('connect', () => {
      this.#isOpening = true
    })
    redis.on('ready', () => {
      this.#isOpening = false
      this.#fault = ''
    })
    redis.on('close', () => {
      if (this.#isOpening) this.#failed(new Error('closed without an answer'))
    })
  }

  /** Which rights its user lacks, in a sentence; undefined when it lacks none, or when Redis does not say. */
  async lacking(said = ''): Promise<string | undefined> {
    const { rights, variable } = this.#options
    const redis = this.#redis()
    if (rights === '' || redis.status !== 'ready') return undefined
    const found = await lackedRights(redis, rights).catch((error: Error) =>
      isRightsError(error) ? [rightOf(error)] : [],
    )
    return found.length === 0 ? undefined : `Redis: the user of ${variable} lacks ${found.join(' ')}${said}`
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

  #failed(error: Error): void {
    const { address, variable } = this.#options
    const { options } = this.#redis()
    this.#fault = explainFault(error, {
      ...address,
      variable,
      where: address.kind === 'sentinel' ? address.masterName : `${options.host}:${options.port}`,
      isHandshake: this.#isOpening,
    })
    this.#isOpening = false
    this.#report(this.#fault)
  }

  #report(text: string): void {
    if (this.#reported.has(text)) return
    this.#reported.set(text, true)
    this.#options.onError(new Error(text))
  }
}

const states = new WeakMap<Redis, ConnectionState>()

/** Has `create` make the connection with the state that it belongs to, and follows it. */
export function withState(options: StateOptions, create: (state: ConnectionState) => Redis): Redis {
  const state: ConnectionState = new ConnectionState(() => redis, options)
  const redis = create(state)
  states.set(redis, state)
  state.follow(redis)
  return redis
}

/** Why the connection does not stand, in a sentence; empty when it does. */
export const faultOf = (redis: Redis): string => states.get(redis)?.fault ?? ''

/** Which documented rights the connection's user lacks, or Sentinels refuse it, in a sentence. */
export async function lackingOf(redis: Redis): Promise<string | undefined> {
  const state = states.get(redis)
  return (await state?.lacking()) ?? state?.ofSentinels
}

/** Why the connection cannot be worked with, in a sentence: for readiness. */
export async function redisProblem(redis: Redis): Promise<string | undefined> {
  if (redis.status !== 'ready') return `the connection is ${redis.status}. ${faultOf(redis)}`.trim()
  return await states.get(redis)?.lacking()
}

/** Waits while Redis answers and its user lacks rights; for a Redis that cannot be reached, for one second. */
export async function untilAllowed(redis: Redis, stopping: AbortSignal): Promise<void> {
  const pause = () => delay(lookEveryMs, undefined, { signal: stopping }).catch(() => undefined)
  if (redis.status !== 'ready') await Promise.race([new Promise((resolve) => redis.once('ready', resolve)), pause()])
  while (!stopping.aborted && (await states.get(redis)?.lacking()) !== undefined) await pause()
}
