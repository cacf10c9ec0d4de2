import type { periodBoundaries } from '@weir/core/calendar/calendar.ts'
import type { Clock } from '@weir/core/clock.ts'
import { checkLimitRequest, unlimitedDecision } from '@weir/core/limits/check-limit-request.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { Charge, LimitRequest, LimitStore } from '@weir/core/limits/limit-store.ts'
import type { CallParts } from '@weir/core/limits/script-codec.ts'
import { Redis } from 'ioredis'
import { ClusterBatcher } from './cluster-batcher.ts'
import type { ClusterConnection } from './cluster-connection.ts'
import { ClusterServers } from './cluster-servers.ts'
import { type BatcherOptions, DecisionBatcher } from './decision-batcher.ts'
import { blockKey, limitKey, markerKey, settlementKey, tallyKey } from './keys.ts'
import { type LimitStoreCounters, StoreCounts } from './limit-store-counters.ts'
import { createHealthCheck, type RedisHealth } from './redis-health.ts'
import { ScriptServer } from './script-server.ts'

/** A call takes well under a millisecond; this is for the network's worst moments, and below what a person notices. */
const deadlineMsDefault = 25
/** Of one subject: at most 800 MB. Idempotency keys of 1,400 requests a second, or settlements within 15 minutes of 520. */
const markersMaxDefault = 1_000_000

export interface RedisLimitStoreOptions {
  /** Of role `limiter`; see connect.ts. The caller closes it, after the store. */
  readonly redis: Redis | ClusterConnection
  /** Only for finding calendar boundaries; counts go by Redis's clock. */
  readonly clock: Clock
  /** With its memory, see createBoundaryCache: it is asked for every limit with a calendar period. */
  readonly periodBoundaries: typeof periodBoundaries
  readonly deadlineMs?: number
  /** Markers that a subject may have at a time: one for an idempotency key, one for a decision that can be settled. */
  readonly markersMax?: number
  /** A test's time for the script; undefined for Redis's clock. */
  readonly now?: () => number | undefined
}

export interface RedisLimitStore extends LimitStore {
  /** A snapshot. */
  readonly counters: LimitStoreCounters
  /** Servers that are found gone, so that requests are decided without them; see circuit-breaker.ts. */
  readonly serversDown: number
  /** How Redis is, for readiness. Asks it at most once a second, whoever asks. */
  checkHealth(): Promise<RedisHealth>
  /** Answers what still waits as unavailable, and whatever comes later. The connection stays open. */
  close(): void
}

/** A store whose counts are in Redis, exact over all processes that share it. */
export const createRedisLimitStore = (options: RedisLimitStoreOptions): RedisLimitStore => new ScriptLimitStore(options)

/** How Redis is run, as the store sees it. */
interface Servers {
  /** Whoever answers now; several only in a Cluster. */
  all(): readonly ScriptServer[]
  opened(): number
  decide(request: LimitRequest, arrivedMs: number): Promise<Decision>
  refund(request: LimitRequest, charge: Charge, arrivedMs: number): Promise<boolean>
  close(): void
}

function oneServer(redis: Redis, options: BatcherOptions): Servers {
  const server = new ScriptServer(redis, options.deadlineMs)
  const lane = new DecisionBatcher(server, options)
  return {
    all: () => [server],
    opened: () => server.breaker.opened,
    decide: (request, arrivedMs) =>
      new Promise((resolve, reject) =>
        lane.add({ kind: 'decide', request, arrivedMs, isIsolated: false, resolve, reject }),
      ),
    refund: (request, charge, arrivedMs) =>
      new Promise((resolve, reject) =>
        lane.add({ kind: 'refund', request, charge, arrivedMs, isIsolated: false, resolve, reject }),
      ),
    close() {
      lane.close()
      server.close()
    },
  }
}

function manyServers(connection: ClusterConnection, options: BatcherOptions): Servers {
  const servers = new ClusterServers(connection, options.deadlineMs)
  const lanes = new ClusterBatcher(servers, options)
  return {
    all: () => connection.masters.map((redis) => servers.of(redis)),
    opened: () => servers.opened,
    decide: (request, arrivedMs) => lanes.decide(request, arrivedMs),
    refund: (request, charge, arrivedMs) => lanes.refund(request, charge, arrivedMs),
    close() {
      lanes.close()
      servers.close()
    },
  }
}

class ScriptLimitStore implements RedisLimitStore {
  readonly checkHealth: () => Promise<RedisHealth>
  readonly #servers: Servers
  readonly #clock: Clock
  readonly #now: () => number | undefined
  readonly #markersMax: number
  readonly #boundaries: typeof periodBoundaries
  readonly #counts = new StoreCounts()

  constructor({
    redis,
    clock,
    periodBoundaries: boundaries,
    deadlineMs = deadlineMsDefault,
    markersMax = markersMaxDefault,
    now,
  }: RedisLimitStoreOptions) {
    this.#markersMax = markersMax
    this.#clock = clock
    this.#now = now ?? (() => undefined)
    this.#boundaries = boundaries
    boundaries('day', 'UTC', 1, clock.nowMs()) // the first use takes longer than a request's deadline
    const options: BatcherOptions = { deadlineMs, counts: this.#counts, parts: () => this.#parts() }
    this.#servers = redis instanceof Redis ? oneServer(redis, options) : manyServers(redis, options)
    const { all } = this.#servers
    this.checkHealth = createHealthCheck({ redis, servers: all, refused: () => this.#counts.refused, clock })
  }

  get counters(): LimitStoreCounters {
    return this.#counts.snapshot(this.#servers.opened())
  }

  get serversDown(): number {
    return this.#servers.all().filter(({ isDown }) => isDown).length
  }

  decide(request: LimitRequest): Promise<Decision> {
    try {
      checkLimitRequest(request)
      const isKept = request.reservation !== undefined && !request.peek
      if (request.limits.length === 0 && !isKept) return Promise.resolve(unlimitedDecision)
      return this.#servers.decide(request, performance.now())
    } catch (error) {
      return Promise.reject(error)
    }
  }

  refund(request: LimitRequest, charge: Charge): Promise<boolean> {
    if (request.limits.length === 0 || charge.atUs === 0) return Promise.resolve(false)
    return this.#servers.refund(request, charge, performance.now())
  }

  close(): void {
    this.#servers.close()
  }

  #parts(): CallParts {
    const testMs = this.#now()
    const nowMs = testMs ?? this.#clock.nowMs()
    return {
      keyOf: limitKey,
      blockKeyOf: blockKey,
      markerKeyOf: markerKey,
      settlementKeyOf: ({ scope }, { id, key }) => key ?? settlementKey(scope.subject, id),
      tallyKeyOf: tallyKey,
      markersMax: this.#markersMax,
      boundariesOf: ({ span }: Limit, { timeZone, anchor }: LimitRequest) =>
        span.kind === 'period' ? this.#boundaries(span.unit, timeZone, anchor, nowMs) : undefined,
      nowMs: testMs,
    }
  }
}
