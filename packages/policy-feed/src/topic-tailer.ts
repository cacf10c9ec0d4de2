import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { FollowLoop } from '@weir/kafka/follow-loop.ts'
import { isMissingTopic, reasonOf } from '@weir/kafka/kafka-errors.ts'
import { type LogRecord, openPartitionLog, type PartitionLog } from '@weir/kafka/partition-log.ts'
import type { PolicyCheckpoint } from './assemble-transactions.ts'

/** The topic, and what is called as it is read. */
export interface TailerOptions extends KafkaOptions {
  readonly topic: string
  /**
   * The last change that was taken over, if reading on from there is as good as reading everything. Asked at every
   * connection.
   */
  readonly resumeFrom: () => PolicyCheckpoint | undefined
  /** What comes next is the topic from its beginning. */
  readonly onBeginning: () => void
  /** What comes next follows the change of `resumeFrom`. */
  readonly onResumed: () => void
  readonly onRecords: (records: readonly LogRecord[]) => void
  /**
   * Kafka says that everything before this offset was handed over; again at least every few seconds while it is there.
   */
  readonly onEnd: (next: bigint) => void
  /** Kafka answers, and has no such topic. */
  readonly onMissing: () => void
}

/** Reads one topic's only partition to its end and on, for as long as the process lives, also while Kafka is down. */
export class TopicTailer {
  readonly #options: TailerOptions
  readonly #loop: FollowLoop
  #log: PartitionLog | undefined
  /** What it waits for; empty while it follows. */
  waitingFor = 'the first connection to Kafka'

  constructor(options: TailerOptions) {
    this.#options = options
    this.#loop = new FollowLoop({ follow: () => this.#tail(), onFailure: (...failure) => this.#onFailure(...failure) })
    void this.#loop.run()
  }

  /** Nothing is handed over any more. The connection ends by itself, when Kafka has answered what it was asked. */
  close(): void {
    this.#loop.close()
    void this.#log?.close()
  }

  #onFailure(error: unknown, failures: number, isLogged: boolean): void {
    const { topic, brokers, log, onMissing } = this.#options
    const missing = isMissingTopic(error)
    this.waitingFor = missing
      ? `topic ${topic}, which does not exist`
      : `Kafka at ${brokers.join(',')}: ${reasonOf(error)}`
    if (missing) onMissing()
    if (isLogged) log.warn({ topic, failures, waitingFor: this.waitingFor }, 'policy not followed, retrying')
  }

  /** One connection, until it breaks or the tailer is closed. */
  async #tail(): Promise<void> {
    const { topic, onRecords, onEnd } = this.#options
    const log = await openPartitionLog(this.#options, topic)
    this.#log = log
    try {
      let position = await this.#begin(log)
      while (!this.#loop.isStopping) {
        const { records, next, end } = await log.read(position)
        if (this.#loop.isStopping) return
        if (records.length > 0) onRecords(records)
        position = next
        this.#isFollowing()
        if (position >= end) onEnd(position)
      }
    } finally {
      await log.close()
    }
  }

  /** Where to read on: after the last change if it is still where it was, else at the beginning. */
  async #begin(log: PartitionLog): Promise<bigint> {
    const { resumeFrom, onResumed, onBeginning, onEnd } = this.#options
    const { first, end } = await log.range()
    const checkpoint = resumeFrom()
    const isHere =
      checkpoint !== undefined &&
      checkpoint.offset >= first &&
      checkpoint.offset < end &&
      (await isCheckpointOf(log, checkpoint))
    if (isHere) onResumed()
    else onBeginning()
    const position = isHere ? checkpoint.offset + 1n : first
    // A read would wait for something to come.
    if (position >= end && !this.#loop.isStopping) {
      this.#isFollowing()
      onEnd(position)
    }
    return position
  }

  #isFollowing(): void {
    this.#loop.succeeded()
    this.waitingFor = ''
  }
}

async function isCheckpointOf(log: PartitionLog, checkpoint: PolicyCheckpoint): Promise<boolean> {
  const { records } = await log.read(checkpoint.offset)
  const [record] = records
  return record?.offset === checkpoint.offset && record.key?.toString() === `change/${checkpoint.id}`
}
