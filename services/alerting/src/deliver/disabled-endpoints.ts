import { isFields, parseJson } from '@weir/contracts/fields.ts'
import type { Clock } from '@weir/core/clock.ts'
import { uuidv5 } from '@weir/core/ids.ts'
import type { Target } from '@weir/policy/policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Cluster, Redis } from 'ioredis'
import type { PublishAlerts } from '../types.ts'
import { addressOf } from './channels/channels.ts'

/** A hash in the queue's Redis: name → JSON of the address, the reason, and since when. */
const disabledKey = 'weir:endpoints:disabled'
/** Changes by another process or a person are known here after this time. */
const refreshMs = 2_000
/** Namespace of the ids of these alerts. */
const disabledNamespace = 'd6f0a6a2-3c4d-5b8e-9a51-0c7d2e4f6b18'

/** Endpoints that answered 410: nothing is sent to them. */
export type DisabledEndpoints = ReturnType<typeof createDisabledEndpoints>

/**
 * Stores endpoints that answered 410. An endpoint counts as disabled only for the address that answered so: another
 * address in the policy enables it. After a loss of data in Redis the next attempt finds out again.
 */
export function createDisabledEndpoints(options: {
  readonly redis: Redis | Cluster
  readonly publish: PublishAlerts
  readonly clock: Clock
  readonly log: Logger
}) {
  const { redis, publish, clock, log } = options
  let known: ReadonlyMap<string, string> = new Map()
  let readMs = Number.NEGATIVE_INFINITY
  let reading: Promise<ReadonlyMap<string, string>> | undefined
  const refresh = async () => {
    if (clock.nowMs() - readMs < refreshMs) return
    // One call serves all: callers that come meanwhile wait for its reply.
    reading ??= redis
      .hgetall(disabledKey)
      .then((found) => new Map(Object.entries(found)))
      .finally(() => {
        reading = undefined
      })
    known = await reading
    readMs = clock.nowMs()
  }
  return {
    /** Returns why nothing is sent to an endpoint; undefined if alerts are sent. */
    async reasonFor(endpoint: Target): Promise<string | undefined> {
      await refresh()
      const found = parseJson(known.get(endpoint.name) ?? '')
      if (!isFields(found) || found.address !== addressOf(endpoint)) return undefined
      return `disabled since ${found.since}: ${found.reason}`
    },
    /**
     * Alerts the owner that an endpoint accepts nothing more, and keeps every process from trying it. The alert has the
     * same id whichever process finds out, and however often on one day.
     */
    async disable(endpoint: Target, reason: string): Promise<void> {
      const { name } = endpoint
      log.warn({ endpoint: name, reason }, 'endpoint disabled')
      const address = addressOf(endpoint)
      const since = new Date(clock.nowMs()).toISOString()
      const text = JSON.stringify({ address, reason, since })
      const id = uuidv5(disabledNamespace, `${name} ${address} ${since.slice(0, 10)}`)
      const data = { endpoint: name, reason }
      // Publish first: later jobs find the endpoint disabled and stay silent.
      await publish([{ id, type: 'weir.endpoint.disabled', subject: name, time: since, data }])
      known = new Map(known).set(name, text)
      await redis.hset(disabledKey, name, text)
    },
    /** Enables an endpoint that accepts alerts again. */
    async enable({ name }: Target): Promise<void> {
      known = new Map([...known].filter(([other]) => other !== name))
      await redis.hdel(disabledKey, name)
    },
  }
}
