import { withTimeout } from '@weir/runtime/with-timeout.ts'
import type { Redis } from 'ioredis'
import { redisProblem } from './connection-state.ts'
import { slotCount } from './key-slot.ts'
import type { ServerAddress } from './redis-url.ts'

/** Far more than the biggest Cluster has masters; what a confused node says cannot open connections without end. */
const nodesMax = 1_000
/** So often is the Cluster asked who holds which slots, while something does not fit; see `refresh`. */
const refreshEveryMs = 200
/** One node must not hold up the question; the next is asked. */
const answerMs = 1_000
/** A node that holds no slots any more, or not yet, is kept so long: it may be receiving them. */
const keptMs = 60_000

const nameOf = ({ host, port }: ServerAddress) => `${host}:${port}`

/** Splits at the last colon: hosts may be IPv6 addresses. */
function addressFrom(name: string): ServerAddress {
  const colon = name.lastIndexOf(':')
  return { host: name.slice(0, colon), port: Number(name.slice(colon + 1)) }
}

/** One line of the answer to CLUSTER SLOTS, its master alone. */
function parseRange(line: unknown, asked: ServerAddress) {
  if (!Array.isArray(line)) return undefined
  const [first, last, node]: unknown[] = line
  const [host, port]: unknown[] = Array.isArray(node) ? node : []
  if (typeof first !== 'number' || typeof last !== 'number' || typeof port !== 'number') return undefined
  // A node that does not know its own name leaves it out, or says `?`: it is the one we asked.
  const isNamed = typeof host === 'string' && host !== '' && host !== '?'
  return { first, last, master: { host: isNamed ? host : asked.host, port } }
}

/**
 * Connections to the masters of a Redis Cluster, each as to a single server: what happens to a command that fails, and
 * whether it goes anywhere else, is up to the sender. Which master holds a slot is asked at the start and
 * whenever it turns out to be wrong.
 */
export class ClusterConnection {
  readonly #seeds: readonly ServerAddress[]
  readonly #connect: (server: ServerAddress) => Redis
  readonly #nodes = new Map<string, { readonly redis: Redis; lastNamedMs: number }>()
  readonly #slots = new Array<Redis | undefined>(slotCount).fill(undefined)
  #slotsKnown = 0
  #askedMs = Number.NEGATIVE_INFINITY
  #isAsking = false
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  readonly #onReady: (() => void)[] = []

  constructor(seeds: readonly ServerAddress[], connect: (server: ServerAddress) => Redis) {
    this.#seeds = seeds
    this.#connect = connect
    for (const seed of seeds) this.at(nameOf(seed))
  }

  /** `ready` when every slot's master is known, whether or not they answer. */
  get status(): 'ready' | 'connecting' | 'end' {
    if (this.#isClosed) return 'end'
    return this.#slotsKnown === slotCount ? 'ready' : 'connecting'
  }

  /** The masters, as far as they are known. */
  get masters(): readonly Redis[] {
    return [...new Set(this.#slots.filter((redis) => redis !== undefined))]
  }

  /** Why the first master that cannot be worked with cannot, in a sentence; any node's while masters are unknown. */
  async problem(): Promise<string | undefined> {
    const isWhole = this.status === 'ready'
    const asked = isWhole ? this.masters : [...this.#nodes.values()].map(({ redis }) => redis)
    const problems = await Promise.all(asked.map((redis) => redisProblem(redis)))
    const found = problems.find((problem) => problem !== undefined)
    return found ?? (isWhole ? undefined : 'the Cluster does not report a master for every slot')
  }

  /** Calls it when a server is connected to again, and when slots have another master: either may lack last writes. */
  on(_: 'ready', run: () => void): void {
    this.#onReady.push(run)
  }

  serverOf(slot: number): Redis | undefined {
    const redis = this.#slots[slot]
    if (redis === undefined) this.refresh()
    return redis
  }

  /** The server of this name, host:port; connected to if it was not yet. */
  at(name: string): Redis | undefined {
    const known = this.#nodes.get(name)
    if (known !== undefined) {
      known.lastNamedMs = performance.now()
      return known.redis
    }
    const address = addressFrom(name)
    if (this.#isClosed || this.#nodes.size >= nodesMax || address.host === '' || !(address.port > 0)) return undefined
    const redis = this.#connect(address)
    redis.on('ready', () => {
      if (this.status !== 'ready') this.refresh()
      else for (const run of this.#onReady) run()
    })
    redis.on('close', () => this.refresh())
    this.#nodes.set(name, { redis, lastNamedMs: performance.now() })
    return redis
  }

  /** A server said that the slot is elsewhere. The host is left out for the one that said so. */
  moved(slot: number, name: string, said: Redis): Redis | undefined {
    const host = said.options.host ?? ''
    const redis = this.at(name.startsWith(':') ? `${host}${name}` : name)
    if (redis !== undefined) this.#hold(slot, redis)
    this.refresh()
    return redis
  }

  /** Asks who holds which slots, soon: now, or when the last answer is old enough. */
  refresh(): void {
    if (this.#isClosed || this.#isAsking || this.#timer !== undefined) return
    const waitMs = Math.max(0, this.#askedMs + refreshEveryMs - performance.now())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#ask()
    }, waitMs)
    this.#timer.unref()
  }

  disconnect(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    for (const { redis } of this.#nodes.values()) redis.disconnect()
  }

  #hold(slot: number, redis: Redis): void {
    if (this.#slots[slot] === undefined) this.#slotsKnown += 1
    this.#slots[slot] = redis
  }

  async #ask(): Promise<void> {
    this.#isAsking = true
    const isAnswered = await this.#askAny()
    this.#isAsking = false
    this.#askedMs = performance.now()
    if (!isAnswered) for (const seed of this.#seeds) this.at(nameOf(seed))
    if (!isAnswered || this.status !== 'ready') this.refresh()
  }

  /** Any node knows; they are asked in an order of chance, so that one that knows wrong is not asked for ever. */
  async #askAny(): Promise<boolean> {
    const order = [...this.#nodes].map(([name, { redis }]) => ({ name, redis, at: Math.random() }))
    for (const { name, redis } of order.sort((a, b) => a.at - b.at)) {
      if (this.#isClosed) return false
      if (redis.status !== 'ready') continue
      const slots: Promise<unknown> = redis.cluster('SLOTS').catch(() => undefined)
      const answer = await withTimeout(slots, answerMs, undefined)
      if (Array.isArray(answer) && this.#learn(answer, addressFrom(name))) return true
    }
    return false
  }

  /** False if the node does not know of any slot: it is not part of the Cluster yet, or not any more. */
  #learn(answer: readonly unknown[], asked: ServerAddress): boolean {
    const ranges = answer.map((line) => parseRange(line, asked)).filter((range) => range !== undefined)
    let isOther = false
    for (const { first, last, master } of ranges) {
      const redis = this.at(nameOf(master))
      if (redis === undefined) continue
      isOther ||= this.#slots[first] !== redis
      for (let slot = Math.max(0, first); slot <= last && slot < slotCount; slot += 1) this.#hold(slot, redis)
    }
    if (isOther) for (const run of this.#onReady) run()
    if (ranges.length > 0) this.#dropOld(performance.now() - keptMs)
    return ranges.length > 0
  }

  #dropOld(namedBeforeMs: number): void {
    const masters = new Set(this.#slots)
    for (const [name, { redis, lastNamedMs }] of this.#nodes) {
      if (lastNamedMs >= namedBeforeMs || masters.has(redis)) continue
      this.#nodes.delete(name)
      redis.disconnect()
    }
  }
}
