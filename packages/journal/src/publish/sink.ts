/** Records of one partition, in order. */
export interface SinkBatch {
  readonly topic: string
  readonly partition: number
  readonly records: readonly { readonly key: Buffer; readonly value: Buffer }[]
}

/** The outcome of one batch. */
export interface SinkResult {
  readonly topic: string
  readonly partition: number
  /**
   * `rejected`: it holds a record that will never be stored. `failed`: it may be stored or not, and may be sent again.
   */
  readonly outcome: 'stored' | 'rejected' | 'failed'
  /** Empty for a stored batch. */
  readonly reason: string
}

/**
 * Where the publisher sends the records of journals: `openBatchProducer` of packages/kafka, or a test's own. It never
 * retries.
 */
export interface Sink {
  /** Asks where the topics are. Rejects when no server answers. */
  learn(topics: readonly string[]): Promise<void>
  /** How many servers there were then. */
  brokers(): number
  /** A topic as it was last learnt; undefined if it does not exist. */
  topic(name: string): { readonly partitions: readonly { readonly replicas: number }[] } | undefined
  /** The server that takes a partition's records; undefined while there is none. */
  leaderOf(topic: string, partition: number): number | undefined
  /** Returns the reason why a partition of this topic has no leader. */
  whyNoLeader(topic: string): string
  /** Sends at most one batch of each partition to one server. Rejects when it is not known what was stored. */
  send(server: number, batches: readonly SinkBatch[]): Promise<readonly SinkResult[]>
  close(): void
}
