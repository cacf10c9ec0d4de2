import type { AlertOf } from '@weir/contracts/alert.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import { uuidv5 } from '@weir/core/ids.ts'
import type { Endpoint } from '@weir/policy/policy.ts'
import type { Redis } from 'ioredis'

/** A hash in the queue's Redis: name → why and since when, for the address that it had. */
const disabledKey = 'weir:endpoints:disabled'
/** Changes by another process or a person are known here after this time. */
const refreshMs = 2_000
/** Namespace of the ids of these alerts. */
const disabledNamespace = 'd6f0a6a2-3c4d-5b8e-9a51-0c7d2e4f6b18'

/** Returns the address that identifies a disabled endpoint; it holds no secret. */
function addressOf(endpoint: Endpoint): string {
  if (endpoint.type === 'webhook') return endpoint.url
  return endpoint.type === 'slack' ? endpoint.urlEnv : endpoint.to.join(' ')
}

interface Disabled {
  readonly address: string
  readonly reason: string
  /** RFC 3339, UTC. */
  readonly since: string
}

/**
 * Endpoints that answered 410. An endpoint counts as disabled only for the address that answered so: another address in
 * the policy enables it. After a loss of data in Redis the next attempt finds out again.
 */
export interface DisabledEndpoints {
  /** Returns why nothing is sent to an endpoint; undefined if alerts are sent. */
  reasonFor(endpoint: Endpoint): Promise<string | undefined>
  /** Calls `notify` first: the alert has the same id whichever process finds out, and however often on one day. */
  disable(
    endpoint: Endpoint,
    reason: string,
    notify: (alert: AlertOf<'weir.endpoint.disabled'>) => Promise<void>,
  ): Promise<void>
  /** Enables an endpoint that accepts alerts again. */
  enable(endpoint: Endpoint): Promise<void>
}

function parseDisabled(text: string | undefined): Disabled | undefined {
  if (text === undefined) return undefined
  try {
    const { address, reason, since } = JSON.parse(text)
    return typeof address === 'string' ? { address, reason: String(reason), since: String(since) } : undefined
  } catch {
    return undefined
  }
}

export function createDisabledEndpoints(redis: Redis, clock: Clock): DisabledEndpoints {
  let known: Record<string, string> = {}
  let readMs = Number.NEGATIVE_INFINITY
  let reading: Promise<Record<string, string>> | undefined
  const refresh = async () => {
    if (clock.nowMs() - readMs < refreshMs) return
    // One call serves all: callers that come meanwhile wait for its reply.
    reading ??= redis.hgetall(disabledKey).finally(() => {
      reading = undefined
    })
    known = await reading
    readMs = clock.nowMs()
  }
  return {
    async reasonFor(endpoint) {
      await refresh()
      const disabled = parseDisabled(known[endpoint.name])
      return disabled?.address === addressOf(endpoint)
        ? `disabled since ${disabled.since}: ${disabled.reason}`
        : undefined
    },
    async disable(endpoint, reason, notify) {
      const { name } = endpoint
      const address = addressOf(endpoint)
      const since = new Date(clock.nowMs()).toISOString()
      const text = JSON.stringify({ address, reason, since })
      // Notify first: later jobs find the endpoint disabled and stay silent.
      await notify({
        id: uuidv5(disabledNamespace, `${name} ${address} ${since.slice(0, 10)}`),
        type: 'weir.endpoint.disabled',
        subject: name,
        time: since,
        data: { endpoint: name, reason },
      })
      known = { ...known, [name]: text }
      await redis.hset(disabledKey, name, text)
    },
    async enable({ name }) {
      const { [name]: _, ...others } = known
      known = others
      await redis.hdel(disabledKey, name)
    },
  }
}
