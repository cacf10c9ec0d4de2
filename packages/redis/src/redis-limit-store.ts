import type { periodBoundaries } from '@weir/core/calendar/calendar.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import {
  type Charge,
  calendarOf,
  checkLimitRequest,
  type LimitRequest,
  type LimitStore,
  type SlotCharge,
  type SlotStore,
  unlimitedDecision,
} from '@weir/core/limits/limit-store.ts'
import type { CallParts } from '@weir/core/limits/script-codec.ts'
import { Redis } from 'ioredis'
import { ClusterBatcher } from './cluster-batcher.ts'
import type { ClusterConnection } from './cluster-connection.ts'
import { ClusterServers } from './cluster-servers.ts'
import { DecisionBatcher } from './decision-batcher.ts'
import { blockKey, limitKey, markerKey, settlementKey, tallyKey, treeSubject } from './keys.ts'
import { StoreCounts } from './limit-store-counters.ts'
import { createHealthCheck, type RedisHealth } from './redis-health.ts'
import { ScriptClient } from './script-client.ts'

/** A call takes well under a millisecond; this is for the network's worst moments, and below what a person notices. */
const deadlineMsDefault = 25
/** At most 800 MB of one subject: idempotency keys of 1,400 requests/s, or settlements within 15 minutes of 520/s. */
export const markersMaxDefault = 1_000_000

/** What the store decides by. */
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

/** The store whose counts are in Redis, exact over all processes that share it. */
export class RedisLimitStore implements LimitStore, SlotStore {
  /** Returns how Redis is, for readiness. Asks it at most once a second, however often it is called. */
  readonly checkHealth: () => Promise<RedisHealth>
  readonly #servers: ScriptClient | ClusterServers
  readonly #batcher: DecisionBatcher | ClusterBatcher
  readonly #counts = new StoreCounts()

  constructor({ redis, clock, periodBoundaries, deadlineMs = deadlineMsDefault, ...rest }: RedisLimitStoreOptions) {
    const { markersMax = markersMaxDefault, now = () => undefined } = rest
    periodBoundaries('day', 'UTC', 1, clock.nowMs()) // the first use takes longer than a request's deadline
    const counts = this.#counts
    const parts = (): CallParts => {
      const testMs = now()
      const nowMs = testMs ?? clock.nowMs()
      return {
        keyOf: limitKey,
        blockKeyOf: blockKey,
        markerKeyOf: markerKey,
        settlementKeyOf: ({ scope }, { id, key }) => key ?? settlementKey(treeSubject(scope), id),
        tallyKeyOf: tallyKey,
        markersMax,
        boundariesOf(limit: Limit, request: LimitRequest) {
          const { timeZone, anchor } = calendarOf(limit, request)
          return limit.span.kind === 'period' ? periodBoundaries(limit.span.unit, timeZone, anchor, nowMs) : undefined
        },
        nowMs: testMs,
      }
    }
    const batches = { deadlineMs, counts, parts }
    if (redis instanceof Redis) {
      this.#servers = new ScriptClient(redis, deadlineMs)
      this.#batcher = new DecisionBatcher(this.#servers, batches)
    } else {
      this.#servers = new ClusterServers(redis, deadlineMs)
      this.#batcher = new ClusterBatcher(this.#servers, batches)
    }
    this.checkHealth = createHealthCheck(redis, this.#servers, counts, clock)
  }

  /** A snapshot of the counts since the start, for metrics; only ever growing. */
  get counters() {
    const { refused: _, scriptErrors, ...counts } = this.#counts
    return { ...counts, breakerOpened: this.#servers.opened, scriptErrors: { ...scriptErrors } }
  }

  /** How many servers are found down, so that requests are decided without them; see circuit-breaker.ts. */
  get serversDown(): number {
    return this.#servers.masters.filter(({ isDown }) => isDown).length
  }

  decide(request: LimitRequest): Promise<Decision> {
    try {
      checkLimitRequest(request)
      const isKept = request.reservation !== undefined && !request.peek
      if (request.limits.length === 0 && !isKept) return Promise.resolve(unlimitedDecision)
      return this.#batcher.decide(request, performance.now())
    } catch (error) {
      return Promise.reject(error)
    }
  }

  refund(request: LimitRequest, charge: Charge): Promise<boolean> {
    if (request.limits.length === 0 || charge.atUs === 0) return Promise.resolve(false)
    return this.#batcher.refund(request, charge, performance.now()).then((refundedAtUs) => refundedAtUs > 0)
  }

  renew(slot: SlotCharge): Promise<number> {
    return this.#changeSlots(slot, 'renew')
  }

  release(slot: SlotCharge): Promise<number> {
    return this.#changeSlots(slot, 'refund')
  }

  #changeSlots(slot: SlotCharge, kind: 'refund' | 'renew'): Promise<number> {
    return this.#batcher.changeSlots(slot, kind, performance.now()).then((atUs) => Math.max(0, atUs))
  }

  /** Answers the waiting requests as unavailable, and all that arrive later. The connection stays open. */
  close(): void {
    this.#batcher.close()
    this.#servers.close()
  }
}
