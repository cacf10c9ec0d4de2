import { setTimeout as delay } from 'node:timers/promises'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import type { Consumer, ConsumerCrashEvent, ConsumerGroupJoinEvent, PartitionAssigner } from 'kafkajs'
import { createClient, type KafkaOptions } from './connect.ts'
import { Assignment, type ConsumerStatus } from './consumer-status.ts'
import { gatherRounds, type OnRound } from './gather-rounds.ts'
import { isMissingTopic, isTransient, reasonOf } from './kafka-errors.ts'
import { PartitionAdmin } from './partition-admin.ts'
import { handleBatch, type RecordBatch } from './record-batch.ts'
import { retryDelayMs } from './retry-delay.ts'
import { type AssignedPartition, type Start, startPartition, type TopicPartition } from './start-partition.ts'
import { commitAsMember, isMemberCurrent, kafkajs, type OffsetCommit, refuseJumps } from './wire/kafkajs-fixes.ts'

export type { ConsumerStatus } from './consumer-status.ts'
export type { ConsumedRecord, RecordBatch } from './record-batch.ts'
export type { AssignedPartition, Start } from './start-partition.ts'
export type { OffsetCommit } from './wire/kafkajs-fixes.ts'

/** What a consumer reads, in which steps, and what it calls. */
export interface ConsumeOptions extends KafkaOptions {
  readonly groupId: string
  readonly topics: readonly string[]
  /** A member that is silent for this long loses its partitions; the broker allows 6 s to 30 min by default. */
  readonly sessionTimeoutMs: number
  /**
   * How long a fetch waits for `minBytes`, counted from the answer to the one before. Well below the session timeout,
   * since nothing else happens meanwhile. A fetch after one without a record waits for up to a second, or this time if
   * it is longer, and ends at the first record.
   */
  readonly maxWaitMs: number
  readonly minBytes: number
  /** Of one fetch; what a process holds is about twice that. */
  readonly maxBytes: number
  readonly partitionsAtOnce: number
  /** Returning means the batch is done with and the next one may come, whatever was committed. See RecordBatch. */
  readonly onBatch?: (batch: RecordBatch) => Promise<void>
  /**
   * Instead of `onBatch`: gets the batches of all partitions that were fetched together, at most one of each, and
   * returns the error of each batch that has one. Rejecting is the same error for all. While it works on one round, the
   * next may come, with other partitions.
   */
  readonly onRound?: OnRound
  /**
   * Names the way in which the members work together. Kafka keeps members of another name out of the group until the
   * last of these has left it.
   */
  readonly protocol?: string
  /**
   * Called for every partition at each assignment, before a record of it is handed out, and again until it answers
   * where to begin. Rejecting with a lost partition or with Kafka being away is fine; any other error ends the
   * consumer. With it, a consumer whose offset the log does not have begins again, and asks here; without it, kafkajs
   * jumps to the log's start.
   */
  readonly onAssigned?: (partition: AssignedPartition) => Promise<Start>
  /**
   * Whether a partition that was stopped for this reason is started again after two sessions, as a person may have
   * repaired what stopped it. Any other waits for its next assignment.
   */
  readonly mayGoOn?: (reason: string) => boolean
  /** The consumer has ended for good and will not come back: the process should exit. Called at most once. */
  readonly onCrash: (error: unknown) => void
}

/**
 * How long kafkajs tries by itself, about 30 s, in which the member keeps its place in the group; after that it starts
 * as a new member, which may join only when the session of the lost one has ended. The client needs the same, else its
 * giving up ends the consumer.
 */
const retryInPlace = {
  initialRetryTime: 200,
  maxRetryTime: 5_000, // the longest pause once Kafka is back
  multiplier: 2,
  factor: 0.2,
  retries: 10,
}

/** A handler gets so long to finish at a stop; below the deadline of the whole process. */
const stopDeadlineMs = 10_000

function unlessMissing(error: unknown): void {
  if (!isMissingTopic(error)) throw error
}

async function missingTopics(options: ConsumeOptions): Promise<string[]> {
  const admin = createClient({ ...options, purpose: 'Read' }).admin()
  try {
    await admin.connect()
    const existing = new Set(await admin.listTopics())
    const missing = options.topics.filter((topic) => !existing.has(topic))
    // The list leaves out topics that we may not see; asked for by name they are refused.
    if (missing.length > 0) await admin.fetchTopicMetadata({ topics: missing }).catch(unlessMissing)
    return missing
  } finally {
    await admin.disconnect()
  }
}

/** Shares partitions out as kafkajs does, under another name. */
const namedAssigner =
  (name: string): PartitionAssigner =>
  (config) => ({ ...kafkajs.PartitionAssigners.roundRobin(config), name })

/** Partitions of a round: those beyond wait for the next. */
const roundMax = 128

function createConsumer(options: ConsumeOptions): Consumer {
  const { groupId, sessionTimeoutMs, maxWaitMs, minBytes, maxBytes, partitionsAtOnce, protocol } = options
  return createClient({ ...options, purpose: 'Read' }, retryInPlace).consumer({
    groupId,
    sessionTimeout: sessionTimeoutMs,
    rebalanceTimeout: sessionTimeoutMs, // who does not come back within the session is lost anyway
    heartbeatInterval: Math.floor(sessionTimeoutMs / 6), // several may be late before the session ends
    maxWaitTimeInMs: maxWaitMs,
    minBytes,
    maxBytes,
    maxBytesPerPartition: Math.ceil(maxBytes / partitionsAtOnce), // so that one fetch has work for all of them
    metadataMaxAge: 60_000, // a raised partition count is seen within a minute
    allowAutoTopicCreation: false,
    ...(protocol === undefined ? {} : { partitionAssigners: [namedAssigner(protocol)] }),
    // The loop below starts afresh, with a new client.
    retry: { ...retryInPlace, restartOnFailure: async () => false },
  })
}

/**
 * Consumes topics in batches of one partition, each offset committed only when the handler says so. Starts by itself as
 * soon as Kafka and the topics are there, outlives Kafka's absence, and reads a group without offsets from the
 * beginning.
 */
export class BatchConsumer {
  readonly #options: ConsumeOptions
  readonly #assignment: Assignment
  readonly #stopping = new AbortController()
  readonly #ended: Promise<void>
  readonly #admin: PartitionAdmin
  #consumer: Consumer | undefined
  /** Starts a partition of the assignment in force. */
  #begin: (assigned: TopicPartition) => void = () => undefined

  constructor(options: ConsumeOptions) {
    this.#options = options
    this.#admin = new PartitionAdmin({ ...options, purpose: 'Read' }, options.groupId)
    if (options.onAssigned !== undefined) refuseJumps(options.groupId)
    this.#assignment = new Assignment(options.sessionTimeoutMs)
    this.#ended = this.#run()
  }

  get groupId(): string {
    return this.#options.groupId
  }

  get status(): ConsumerStatus {
    return this.#assignment.status()
  }

  /** Waits for the batches in hand, leaves the group and disconnects. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    const finished = Promise.all([this.#ended, this.#consumer?.disconnect().catch(() => undefined)])
    await withTimeout(finished, stopDeadlineMs, undefined)
    await this.#admin.close()
  }

  #crash(error: unknown): void {
    if (this.#assignment.crashed !== undefined || this.#stopping.signal.aborted) return
    this.#assignment.crash(reasonOf(error))
    this.#options.onCrash(error)
  }

  /**
   * A new client and member each time, until a stop or a fault that no retry fixes. A Kafka that is down is no such
   * fault.
   */
  async #run(): Promise<void> {
    const { log, groupId } = this.#options
    for (let failures = 1; ; failures += 1) {
      try {
        const missing = await missingTopics(this.#options)
        if (this.#stopping.signal.aborted) return
        if (missing.length === 0) {
          const joinsBefore = this.#assignment.joins
          const error = await this.#runOnce()
          if (this.#stopping.signal.aborted || this.#assignment.crashed !== undefined) return
          if (!isTransient(error)) return this.#crash(error)
          if (this.#assignment.joins > joinsBefore) failures = 1
          this.#assignment.wait(reasonOf(error))
        } else {
          this.#assignment.wait(`topics ${missing.join(', ')}, which do not exist`)
        }
      } catch (error) {
        if (!isTransient(error)) return this.#crash(error)
        this.#assignment.wait(`Kafka at ${this.#options.brokers.join(',')}: ${reasonOf(error)}`)
      }
      log.warn({ groupId, failures, waitingFor: this.#assignment.waitingFor }, 'consumer not running, retrying')
      await delay(retryDelayMs(failures), undefined, { signal: this.#stopping.signal }).catch(() => undefined)
      if (this.#stopping.signal.aborted) return
    }
  }

  /** Nothing of a partition is fetched before it is known where it begins. */
  #join(consumer: Consumer, { memberId, memberAssignment }: ConsumerGroupJoinEvent['payload']): void {
    this.#assignment.join(memberAssignment, memberId)
    const { onAssigned, log } = this.#options
    const { joins } = this.#assignment
    const isFenced = () =>
      this.#stopping.signal.aborted || this.#assignment.joins !== joins || !isMemberCurrent(memberId)
    const commit = (topic: string, commits: readonly OffsetCommit[]) => commitAsMember(memberId, topic, commits)
    this.#begin = (assigned) => {
      if (onAssigned === undefined) return
      startPartition(assigned, { consumer, admin: this.#admin, commit, onAssigned, isFenced, log })
        .then((reason) => {
          if (reason !== undefined) this.#stopPartition(consumer, assigned, reason)
          else if (!isFenced()) this.#assignment.goOn(assigned)
        })
        .catch((error: unknown) => this.#crash(error))
    }
    for (const [topic, partitions] of Object.entries(memberAssignment)) {
      consumer.resume([{ topic, partitions }]) // kafkajs remembers pauses from before
      if (onAssigned === undefined) continue
      consumer.pause([{ topic, partitions }])
      for (const partition of partitions) this.#begin({ topic, partition })
    }
  }

  #stopPartition(consumer: Consumer, assigned: TopicPartition, reason: string): void {
    consumer.pause([{ topic: assigned.topic, partitions: [assigned.partition] }])
    this.#assignment.stop({ ...assigned, reason })
    this.#options.log.error({ ...assigned, reason }, 'partition stopped')
    const { mayGoOn, sessionTimeoutMs } = this.#options
    const begin = this.#begin
    if (mayGoOn?.(reason) === true) setTimeout(() => begin(assigned), 2 * sessionTimeoutMs).unref()
  }

  /** Runs one kafkajs consumer to its end and says what ended it. */
  async #runOnce(): Promise<unknown> {
    const { topics, partitionsAtOnce, onRound, onBatch = gatherRounds(onRound), log } = this.#options
    const onTrouble = this.#assignment.trouble.bind(this.#assignment)
    const consumer = createConsumer({ ...this.#options, onTrouble })
    this.#consumer = consumer
    const { promise: ended, resolve: end } = Promise.withResolvers<unknown>()
    const { signal } = this.#stopping
    signal.addEventListener('abort', () => end(signal.reason), { once: true })
    consumer.on('consumer.crash', ({ payload }: ConsumerCrashEvent) => end(payload.error))
    consumer.on('consumer.group_join', ({ payload }) => this.#join(consumer, payload))
    consumer.on('consumer.heartbeat', () => this.#assignment.progress())
    const onHandlerFault = (error: unknown) => this.#crash(error)
    await consumer.connect()
    await consumer.subscribe({ topics: [...topics], fromBeginning: true })
    if (!signal.aborted) {
      await consumer.run({
        autoCommit: false,
        eachBatchAutoResolve: false,
        partitionsConsumedConcurrently: onRound === undefined ? partitionsAtOnce : roundMax,
        eachBatch: (payload) => {
          const onStopped = (assigned: TopicPartition, reason: string) =>
            this.#stopPartition(consumer, assigned, reason)
          return handleBatch(payload, { onBatch, assignment: this.#assignment, onHandlerFault, onStopped, log })
        },
      })
    }
    if (signal.aborted) await consumer.disconnect() // the stop may have come before there was anything to stop
    return ended
  }
}
