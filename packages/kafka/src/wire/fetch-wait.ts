/** Longest wait of a fetch of idle partitions; a stop of the consumer waits for it. */
const idleWaitMs = 1_000
/** No heartbeat is sent during a fetch: several of them fit into a session. */
const idleWaitShare = 1 / 6

/** While a partition is read as it is written, others bring a third: smaller blocks cost more a row, and end sooner. */
const besideLiveShare = 1 / 3
/** A batch of the log is given whole or not at all, and topics.json allows 2 MiB. */
const besideLiveBytes = 2_100_000

/** What the group makes of the answer for one partition. */
export interface FetchedBatch {
  isEmpty(): boolean
  /** Records of the log behind the last one of the batch, as a decimal number; 0 also for an empty one. */
  offsetLag(): string
}

/** The parts of kafkajs's ConsumerGroup that fetch. */
export interface FetchingGroup {
  maxWaitTime: number
  minBytes: number
  readonly maxBytes: number
  readonly maxBytesPerPartition: number
  readonly sessionTimeout: number
  fetch(nodeId: string): Promise<FetchedBatch[]>
}

/** What is known of one broker. */
interface Fetched {
  /** When it answered last. */
  readonly answeredAt: number
  /** Its last answer had partitions, and no record of any. */
  readonly isIdle: boolean
  /** Partitions of its last answer. */
  readonly partitions: number
  /** Its last answer had all that was new in a partition: an empty one may have been left out. */
  readonly isLive: boolean
}

interface Brokers {
  readonly fetched: Map<string, Fetched>
  /** When the fetches under way that gather end. */
  readonly endsAt: Map<string, number>
  /** Brokers that are being fetched from. */
  readonly underWay: Set<string>
}

const never: Fetched = { answeredAt: Number.NEGATIVE_INFINITY, isIdle: false, partitions: 0, isLive: false }

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

const newBrokers = (): Brokers => ({ fetched: new Map(), endsAt: new Map(), underWay: new Set() })

/** Of the broker, or of one that answered later and is not asked yet for more. */
function lastAnswer({ fetched, underWay }: Brokers, nodeId: string): number {
  const inWork = [...fetched].filter(([other]) => other === nodeId || !underWay.has(other))
  return Math.max(never.answeredAt, ...inWork.map(([, { answeredAt }]) => answeredAt))
}

/** So that each partition has its place in the answer. */
const besideLive = ({ maxBytes, maxBytesPerPartition: max }: FetchingGroup, partitions: number) => {
  const share = Math.min(max * besideLiveShare, maxBytes / partitions)
  return { maxBytesPerPartition: Math.ceil(Math.min(max, Math.max(share, besideLiveBytes))) }
}

/**
 * The original has every fetch wait for the whole of its time, after the batches of the fetch before were worked off: a
 * record waits for both. Here the time counts from the answer to the fetch before, of the same broker. It ends sooner
 * if a fetch from another broker does: from then on the brokers answer together, and what they bring is one round. If
 * rounds take longer than half of the time, that is never seen: it then ends later once, with the next fetch from the
 * broker whose records are being worked off.
 *
 * After an answer without a record the next fetch gathers nothing: it is answered at the first record, and otherwise
 * waits for longer. So a record that follows a pause is read immediately, and idle partitions are seldom asked for.
 *
 * The next fetch begins when the records of this one are worked off. So partitions that are far behind bring less while
 * another one is read as it is written, whose records would wait for all of theirs.
 */
export function waitAsNeeded(group: { prototype: FetchingGroup }): void {
  const { fetch } = group.prototype
  const all = new WeakMap<FetchingGroup, Brokers>()
  group.prototype.fetch = async function (nodeId) {
    const brokers = all.get(this) ?? newBrokers()
    all.set(this, brokers)
    const { fetched, endsAt, underWay } = brokers
    const { isIdle, partitions } = fetched.get(nodeId) ?? never
    const answeredAt = lastAnswer(brokers, nodeId)
    const now = performance.now()
    // The answer that should be here is late: nobody waits for it.
    const others = [...endsAt.values()].filter((end) => end > now)
    const end = Math.max(now, Math.min(answeredAt + this.maxWaitTime, ...others))
    const longMs = Math.max(this.maxWaitTime, Math.min(idleWaitMs, this.sessionTimeout * idleWaitShare))
    const idle = { maxWaitTime: Math.floor(longMs), minBytes: 1 }
    const settings = {
      ...(isIdle ? idle : { maxWaitTime: Math.ceil(end - now) }),
      ...([...fetched.values()].some(({ isLive }) => isLive) ? besideLive(this, partitions) : {}),
    }
    if (partitions > 0 && !isIdle) endsAt.set(nodeId, end)
    let batches: FetchedBatch[] = []
    underWay.add(nodeId)
    try {
      batches = await fetch.call(withSettings(this, settings), nodeId)
      return batches
    } finally {
      fetched.set(nodeId, {
        answeredAt: performance.now(),
        isLive: batches.some((batch) => !batch.isEmpty() && batch.offsetLag() === '0'),
        partitions: batches.length,
        // Without partitions, as while all of them are paused, the fetch was none.
        isIdle: batches.length > 0 && batches.every((batch) => batch.isEmpty()),
      })
      endsAt.delete(nodeId)
      underWay.delete(nodeId)
    }
  }
}
