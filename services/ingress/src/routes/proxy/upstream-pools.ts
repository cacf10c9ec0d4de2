import { subjectShareDefault } from '@weir/decide/fair-slots.ts'
import type { Policy, Upstream } from '@weir/policy/policy.ts'
import type { Histogram } from '@weir/runtime/histogram.ts'
import type { LabelCells } from '@weir/runtime/label-cells.ts'
import { Client, type Dispatcher, Pool } from 'undici'
import { connectorSkippingContinue } from './skip-continue.ts'
import { UpstreamSlots } from './upstream-slots.ts'

/** A host on the same continent accepts within a second; a lost SYN is sent again after one, and after three. */
const connectTimeoutMs = 10_000
/** Shorter than the 5 s after which Node's own servers hang up; what an upstream announces itself goes before it. */
const idleConnectionMs = 4_000
/** Headers of an answer. Beyond it is 502. */
const answerHeaderBytesMax = 65_536

/** The connections to one upstream. */
interface UpstreamPool {
  readonly pool: Pool
  /** Taken before a request is dispatched: the pool never has more requests than connections. */
  readonly slots: UpstreamSlots
  /** Of its requests, from their sending until the end of the answer. */
  readonly duration: Histogram
}

/** Bounds of the way to an upstream, unless configured otherwise. */
export const upstreamBounds = {
  /** Connections to one upstream from this process: as many requests are with it at the same time. */
  connectionsMax: 1_024,
  /** Requests that wait for one of them; the next one is refused. More than this never catches up in time. */
  waitingMax: 1_024,
  /** Share of the slots that one subject may have once half are taken; 1 for no such bound. */
  subjectShare: subjectShareDefault,
  /**
   * The least rate of a client's body, in bytes a second; 0 for none. A byte every few seconds would hold a slot for
   * hours; modems of the last century sent ten times as much. IIS asks for the same.
   */
  bodyRateMin: 240,
  /** A body that is read before its decision may take this long: it holds memory. Node gives a request as long. */
  readMsMax: 300_000,
  /** How often upload rates are checked: short pauses of a client even out in the meantime. */
  rateEveryMs: 10_000,
}

/** The bounds of one process. */
export type UpstreamBounds = Readonly<typeof upstreamBounds>

const connectionOf = ({ timeoutMs, idleMs = timeoutMs }: Upstream) => ({
  pipelining: 1,
  allowH2: false,
  connect: connectorSkippingContinue({ allowH2: false, timeout: Math.min(connectTimeoutMs, timeoutMs) }),
  headersTimeout: timeoutMs,
  bodyTimeout: idleMs,
  keepAliveTimeout: idleConnectionMs,
  maxHeaderSize: answerHeaderBytesMax,
})

const keyOf = ({ url, timeoutMs, idleMs, connections }: Upstream) => `${url} ${timeoutMs} ${idleMs} ${connections}`

/** A pool for each upstream that was asked; those that the policy has no more are closed when a new one is opened. */
export function createUpstreamPools(bounds: UpstreamBounds, durations: LabelCells<Histogram>) {
  const pools = new Map<string, Omit<UpstreamPool, 'duration'>>()
  const latest = new WeakMap<Upstream, UpstreamPool>()
  /** At most one for each slot. */
  const alone = new Set<Client>()

  const closeUnused = (policy: Policy) => {
    const used = new Set([...policy.upstreams.values()].map(keyOf))
    for (const [key, { pool, slots }] of pools) {
      // Waiting requests still get their connections from this pool; the next new pool closes it.
      if (used.has(key) || slots.isBusy) continue
      pools.delete(key)
      // It resolves when the last request is done; no code waits for that, and nothing can fail.
      void pool.close()
    }
  }

  const open = (upstream: Upstream): Omit<UpstreamPool, 'duration'> => {
    const { connections = bounds.connectionsMax } = upstream
    return {
      slots: new UpstreamSlots(connections, upstream.connections ?? bounds.waitingMax, bounds.subjectShare),
      pool: new Pool(upstream.url, { connections, ...connectionOf(upstream) }),
    }
  }

  return {
    of(upstream: Upstream, policy: Policy): UpstreamPool {
      const known = latest.get(upstream)
      if (known !== undefined && !known.pool.closed) return known
      const key = keyOf(upstream)
      const found = pools.get(key) ?? open(upstream)
      pools.set(key, found)
      const ofUpstream = { ...found, duration: durations.of(upstream.name) }
      latest.set(upstream, ofUpstream)
      closeUnused(policy)
      return ofUpstream
    },
    /** Sends a request over a connection of its own; any idle one could be closed by the upstream as it goes out. */
    dispatchAlone(upstream: Upstream, request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
      const client = new Client(upstream.url, connectionOf(upstream))
      alone.add(client)
      client.dispatch({ ...request, reset: true }, handler)
      void client.close().finally(() => alone.delete(client))
    },
    /** Breaks off what still runs. */
    async close(): Promise<void> {
      const all = [...[...pools.values()].map(({ pool }) => pool), ...alone]
      await Promise.all(all.map((one) => one.destroy()))
    },
  }
}
