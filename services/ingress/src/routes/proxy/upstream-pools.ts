import type { Policy, Upstream } from '@weir/core/policy/policy.ts'
import { Pool } from 'undici'

/** Connections to one upstream from this process: as many requests are with it at once. */
const connectionsMax = 1_024
/** Requests that wait for one of them; the next is told to come back. More than this never catches up in time. */
const waitingMax = 1_024
/** A host on the same continent accepts within a second; a lost SYN is sent again after one, and after three. */
const connectTimeoutMs = 10_000
/** Shorter than the 5 s after which Node's own servers hang up; what an upstream announces itself goes before it. */
const idleConnectionMs = 4_000
/** Headers of an answer. Beyond it is 502. */
const answerHeaderBytesMax = 65_536

/** The connections to one upstream. */
export interface UpstreamPool {
  readonly pool: Pool
  /** Requests that are with it or wait for it; whoever passes one on counts it. */
  open: number
}

/** Whether one more request would wait behind too many. */
export const isFull = ({ open }: UpstreamPool): boolean => open >= connectionsMax + waitingMax

export interface UpstreamPools {
  of(upstream: Upstream, policy: Policy): UpstreamPool
  /** Breaks off what still runs. */
  close(): Promise<void>
}

const keyOf = ({ url, timeoutMs }: Upstream) => `${url} ${timeoutMs}`

/** A pool for each upstream that was asked; those that the policy has no more are closed when a new one is opened. */
export function createUpstreamPools(): UpstreamPools {
  const pools = new Map<string, UpstreamPool>()
  const latest = new WeakMap<Upstream, UpstreamPool>()

  const closeUnused = (policy: Policy) => {
    const used = new Set([...policy.upstreams.values()].map(keyOf))
    for (const [key, { pool }] of pools) {
      if (used.has(key)) continue
      pools.delete(key)
      // Resolves when the last request is done; there is nobody to wait for it and nothing it could fail at.
      void pool.close()
    }
  }

  const open = (upstream: Upstream): UpstreamPool => ({
    open: 0,
    pool: new Pool(upstream.url, {
      connections: connectionsMax,
      pipelining: 1,
      allowH2: false,
      connect: { timeout: Math.min(connectTimeoutMs, upstream.timeoutMs) },
      headersTimeout: upstream.timeoutMs,
      bodyTimeout: upstream.timeoutMs,
      keepAliveTimeout: idleConnectionMs,
      maxHeaderSize: answerHeaderBytesMax,
    }),
  })

  return {
    of(upstream, policy) {
      const known = latest.get(upstream)
      if (known !== undefined && !known.pool.closed) return known
      const key = keyOf(upstream)
      const found = pools.get(key) ?? open(upstream)
      pools.set(key, found)
      latest.set(upstream, found)
      closeUnused(policy)
      return found
    },
    async close() {
      await Promise.all([...pools.values()].map(({ pool }) => pool.destroy()))
    },
  }
}
