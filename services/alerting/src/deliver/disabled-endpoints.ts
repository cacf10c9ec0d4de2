import type { AlertOf } from '@weir/contracts/alert.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import { uuidv5 } from '@weir/core/ids.ts'
import type { Endpoint } from '@weir/policy/policy.ts'
import type { Redis } from 'ioredis'

/** A hash in the queue's Redis: name → why and since when, for the address that it had. */
const disabledKey = 'weir:endpoints:disabled'
/** What another process, or a person, changed is known here after so long. */
const refreshMs = 2_000
/** Namespace of the ids of these alerts. */
const disabledNamespace = 'd6f0a6a2-3c4d-5b8e-9a51-0c7d2e4f6b18'

/** What an endpoint is disabled by: another address is another endpoint. Never a secret. */
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
 * Endpoints that said they take no more (410). One counts as disabled only while its address is the one that said so: to give it another
 * in the policy enables it. A Redis that forgot asks once more, and is told again.
 */
export interface DisabledEndpoints {
  /** Why nothing is sent there; undefined where something is. */
  reasonFor(endpoint: Endpoint): Promise<string | undefined>
  /** `tell` tells its owner, first: the same alert whichever process finds out, and however often on one day. */
  disable(
    endpoint: Endpoint,
    reason: string,
    tell: (alert: AlertOf<'weir.endpoint.disabled'>) => Promise<void>,
  ): Promise<void>
  /** It takes what it is sent again. */
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
    // One asks for all; whoever comes meanwhile waits for its answer.
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
    async disable(endpoint, reason, tell) {
      const { name } = endpoint
      const address = addressOf(endpoint)
      const since = new Date(clock.nowMs()).toISOString()
      const text = JSON.stringify({ address, reason, since })
      // Told first: what is to go there afterwards finds it disabled, and says nothing any more.
      await tell({
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
