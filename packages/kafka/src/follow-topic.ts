import { createCluster, type KafkaOptions } from './connect.ts'
import { FollowLoop } from './follow-loop.ts'
import { reasonOf } from './kafka-errors.ts'
import { fetchBytesMax, type LogRecord, maxWaitMs } from './partition-log.ts'
import { type Cluster, fetchParts } from './wire/raw-cluster.ts'

/** The topic, and what is called as it is read. */
export interface FollowerOptions extends KafkaOptions {
  readonly topic: string
  readonly onRecords: (partition: number, records: readonly LogRecord[]) => void
  /** Records were left out: Kafka has deleted them, or they were too many to be read in time. */
  readonly onSkipped: () => void
}

/** A reader this far behind shows no present: seconds of the highest load. */
const lagMax = 50_000n

/**
 * Follows all partitions of a topic from their ends, without a group, until it is closed; also over times without
 * Kafka. Partitions that the topic gets meanwhile are followed after the next connection.
 */
export class TopicFollower {
  readonly #options: FollowerOptions
  readonly #positions = new Map<number, bigint>()
  readonly #ready = Promise.withResolvers<void>()
  readonly #loop: FollowLoop
  #cluster: Cluster | undefined
  /** Why it does not follow; undefined while it does, or has not tried yet. */
  problem: string | undefined

  constructor(options: FollowerOptions) {
    this.#options = options
    this.#loop = new FollowLoop({
      follow: () => this.#follow().finally(() => this.#disconnect()),
      onFailure: (...failure) => this.#onFailure(...failure),
    })
    void this.#loop.run()
  }

  /** Resolves once every record that comes from now on will be handed over; never if it is closed before. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  /** Nothing is handed over any more. */
  close(): void {
    this.#loop.close()
    this.#disconnect()
  }

  #disconnect(): void {
    this.#cluster?.disconnect().catch(() => undefined) // a broken connection ends by itself
    this.#cluster = undefined
  }

  #onFailure(error: unknown, failures: number, isLogged: boolean): void {
    const { topic, log } = this.#options
    this.problem = `${topic} cannot be read: ${reasonOf(error)}`
    if (isLogged) log.warn({ topic, failures, problem: this.problem }, 'topic not followed, retrying')
  }

  /** One connection, until it breaks or the follower is closed. */
  async #follow(): Promise<void> {
    const { topic } = this.#options
    const cluster = createCluster({ ...this.#options, purpose: 'Read' })
    this.#cluster = cluster
    await cluster.connect()
    await cluster.addTargetTopic(topic)
    const partitions = cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId)
    await this.#place(cluster, partitions)
    const leaders = Object.entries(cluster.findLeaderForPartitions(topic, partitions))
    // The first that breaks ends the connection, and with it the others.
    await Promise.all(leaders.map(([nodeId, own]) => this.#read(cluster, nodeId, own)))
  }

  /** Finds where each partition is read on: where it was left, or at its end. */
  async #place(cluster: Cluster, partitions: readonly number[]): Promise<void> {
    const { topic, onSkipped } = this.#options
    const edge = async (fromBeginning: boolean) => {
      const asked = [{ topic, partitions: partitions.map((partition) => ({ partition })), fromBeginning }]
      const [found] = await cluster.fetchTopicsOffset(asked)
      return new Map(found?.partitions.map(({ partition, offset }) => [partition, BigInt(offset)]))
    }
    const [first, end] = [await edge(true), await edge(false)]
    const isFirstTime = this.#positions.size === 0
    for (const partition of partitions) {
      const [from = 0n, to = 0n] = [first.get(partition), end.get(partition)]
      // A partition that is new has had no record that was to be shown.
      const known = this.#positions.get(partition) ?? (isFirstTime ? to : from)
      const isThere = known >= from && known <= to
      if (!isThere) onSkipped()
      this.#positions.set(partition, isThere ? known : from)
    }
  }

  async #read(cluster: Cluster, nodeId: string, partitions: readonly number[]): Promise<void> {
    const { topic, onRecords, onSkipped } = this.#options
    const leader = await cluster.findBroker({ nodeId })
    while (!this.#loop.isStopping) {
      const positions = new Map(partitions.map((partition) => [partition, this.#positions.get(partition) ?? 0n]))
      this.#ready.resolve()
      const found = await fetchParts(leader, { topic, positions, waitMs: maxWaitMs, bytesMax: fetchBytesMax })
      if (this.#loop.isStopping) return
      this.#loop.succeeded()
      this.problem = undefined
      for (const { partition, records, next = positions.get(partition) ?? 0n, end } of found) {
        const isBehind = end - next > lagMax
        this.#positions.set(partition, isBehind ? end : next)
        if (records.length > 0) onRecords(partition, records)
        if (isBehind) onSkipped()
      }
    }
  }
}
