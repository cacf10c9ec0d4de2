/** Longest wait of a fetch of idle partitions; a stop of the consumer waits for it. */
const idleWaitMs = 1_000
/** No heartbeat is sent during a fetch: several of them fit into a session. */
const idleWaitShare = 1 / 6

/** The parts of kafkajs's ConsumerGroup that fetch. */
export interface FetchingGroup {
  maxWaitTime: number
  minBytes: number
  readonly sessionTimeout: number
  fetch(nodeId: string): Promise<{ isEmpty(): boolean }[]>
}

interface FetchWait {
  readonly wholeMs: number
  readonly minBytes: number
  /** By broker. */
  readonly answeredAt: Map<string, number>
  /** Brokers whose last answer had partitions, and no record of any. */
  readonly idle: Set<string>
}

/**
 * The original has every fetch wait for the whole of its time, after the batches of the fetch before were worked off: a
 * record waits for both. Here the time counts from the answer to the fetch before, of the same broker.
 *
 * After an answer without a record the next fetch gathers nothing: it is answered at the first record, and otherwise
 * waits for longer. So a record that follows a pause is read immediately, and idle partitions are seldom asked for.
 */
export function waitAsNeeded(group: { prototype: FetchingGroup }): void {
  const { fetch } = group.prototype
  const waits = new WeakMap<FetchingGroup, FetchWait>()
  group.prototype.fetch = async function (nodeId) {
    const fresh = { wholeMs: this.maxWaitTime, minBytes: this.minBytes, answeredAt: new Map(), idle: new Set<string>() }
    const wait: FetchWait = waits.get(this) ?? fresh
    waits.set(this, wait)
    const isIdle = wait.idle.delete(nodeId)
    const workedMs = performance.now() - (wait.answeredAt.get(nodeId) ?? Number.NEGATIVE_INFINITY)
    const gatherMs = Math.max(0, Math.ceil(wait.wholeMs - workedMs))
    const longMs = Math.max(wait.wholeMs, Math.min(idleWaitMs, this.sessionTimeout * idleWaitShare))
    this.maxWaitTime = isIdle ? Math.floor(longMs) : gatherMs
    this.minBytes = isIdle ? 1 : wait.minBytes
    try {
      const batches = await fetch.call(this, nodeId)
      // Without partitions, as while all of them are paused, the fetch was none.
      if (batches.length > 0 && batches.every((batch) => batch.isEmpty())) wait.idle.add(nodeId)
      return batches
    } finally {
      wait.answeredAt.set(nodeId, performance.now())
    }
  }
}
