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

/** What is known of one broker. */
interface Fetched {
  /** When it answered last. */
  readonly answeredAt: number
  /** Its last answer had partitions, and no record of any. */
  readonly isIdle: boolean
  /** Its last answer had partitions. */
  readonly hasPartitions: boolean
}

interface Brokers {
  readonly fetched: Map<string, Fetched>
  /** When the fetches under way that gather end. */
  readonly endsAt: Map<string, number>
}

const never: Fetched = { answeredAt: Number.NEGATIVE_INFINITY, isIdle: false, hasPartitions: false }

/**
 * The group as one fetch sees it: the original reads the settings after awaits, in which a fetch from another broker
 * may begin.
 */
function withSettings(group: FetchingGroup, settings: Partial<FetchingGroup>): FetchingGroup {
  const given = new Map<PropertyKey, unknown>(Object.entries(settings))
  return new Proxy(group, {
    get(of, name) {
      const value = given.get(name) ?? Reflect.get(of, name)
      // A method that joins the group again, for one, is the group's own.
      return typeof value === 'function' ? value.bind(of) : value
    },
  })
}

/**
 * The original has every fetch wait for the whole of its time, after the batches of the fetch before were worked off: a
 * record waits for both. Here the time counts from the answer to the fetch before, of the same broker. It ends sooner
 * if a fetch from another broker does: from then on the brokers answer together, and what they bring is one round.
 *
 * After an answer without a record the next fetch gathers nothing: it is answered at the first record, and otherwise
 * waits for longer. So a record that follows a pause is read immediately, and idle partitions are seldom asked for.
 */
export function waitAsNeeded(group: { prototype: FetchingGroup }): void {
  const { fetch } = group.prototype
  const all = new WeakMap<FetchingGroup, Brokers>()
  group.prototype.fetch = async function (nodeId) {
    const { fetched, endsAt } = all.get(this) ?? { fetched: new Map<string, Fetched>(), endsAt: new Map() }
    all.set(this, { fetched, endsAt })
    const { answeredAt, isIdle, hasPartitions } = fetched.get(nodeId) ?? never
    const now = performance.now()
    // The answer that should be here is late: nobody waits for it.
    const others = [...endsAt.values()].filter((end) => end > now)
    const end = Math.max(now, Math.min(answeredAt + this.maxWaitTime, ...others))
    const longMs = Math.max(this.maxWaitTime, Math.min(idleWaitMs, this.sessionTimeout * idleWaitShare))
    const idle = { maxWaitTime: Math.floor(longMs), minBytes: 1 }
    const settings = isIdle ? idle : { maxWaitTime: Math.ceil(end - now) }
    if (hasPartitions && !isIdle) endsAt.set(nodeId, end)
    let has = { isIdle: false, hasPartitions: false }
    try {
      const batches = await fetch.call(withSettings(this, settings), nodeId)
      // Without partitions, as while all of them are paused, the fetch was none.
      const isWithout = batches.length === 0
      has = { hasPartitions: !isWithout, isIdle: !isWithout && batches.every((batch) => batch.isEmpty()) }
      return batches
    } finally {
      fetched.set(nodeId, { answeredAt: performance.now(), ...has })
      endsAt.delete(nodeId)
    }
  }
}
