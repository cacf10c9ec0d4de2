import { setTimeout as delay } from 'node:timers/promises'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { isMissingTopic, reasonOf } from '@weir/kafka/kafka-errors.ts'
import { type LogRecord, openPartitionLog, type PartitionLog } from '@weir/kafka/partition-log.ts'
import { retryDelayMs } from '@weir/kafka/retry-delay.ts'
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

/** One of this many failed attempts in a row is logged: about twice a minute at the longest pause. */
const failuresPerLogLine = 6

/** Reads one topic's only partition to its end and on, for as long as the process lives, also while Kafka is down. */
export class TopicTailer {
  readonly #options: TailerOptions
  readonly #stopping = new AbortController()
  #log: PartitionLog | undefined
  #failures = 0
  /** What it waits for; empty while it follows. */
  waitingFor = 'the first connection to Kafka'

  constructor(options: TailerOptions) {
    this.#options = options
    void this.#run()
  }

  /** Nothing is handed over any more. The connection ends by itself, when Kafka has answered what it was asked. */
  close(): void {
    this.#stopping.abort()
    void this.#log?.close()
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  async #run(): Promise<void> {
    const { topic, brokers, log } = this.#options
    while (!this.#isStopping) {
      try {
        await this.#tail()
      } catch (error) {
        if (this.#isStopping) return
        this.#failures += 1
        const missing = isMissingTopic(error)
        this.waitingFor = missing
          ? `topic ${topic}, which does not exist`
          : `Kafka at ${brokers.join(',')}: ${reasonOf(error)}`
        if (missing) this.#options.onMissing()
        if (this.#failures % failuresPerLogLine === 1) {
          log.warn(
            { topic, failures: this.#failures, waitingFor: this.waitingFor },
            'policy not followed, trying again',
          )
        }
        await delay(retryDelayMs(this.#failures), undefined, { signal: this.#stopping.signal }).catch(() => undefined)
      }
    }
  }

  /** One connection, until it breaks or the tailer is closed. */
  async #tail(): Promise<void> {
    const { topic, onRecords, onEnd } = this.#options
    const log = await openPartitionLog(this.#options, topic)
    this.#log = log
    try {
      let position = await this.#begin(log)
      while (!this.#isStopping) {
        const { records, next, end } = await log.read(position)
        if (this.#isStopping) return
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
    if (position >= end && !this.#isStopping) {
      this.#isFollowing()
      onEnd(position)
    }
    return position
  }

  #isFollowing(): void {
    this.#failures = 0
    this.waitingFor = ''
  }
}

async function isCheckpointOf(log: PartitionLog, checkpoint: PolicyCheckpoint): Promise<boolean> {
  const { records } = await log.read(checkpoint.offset)
  const [record] = records
  return record?.offset === checkpoint.offset && record.key?.toString() === `change/${checkpoint.id}`
}
