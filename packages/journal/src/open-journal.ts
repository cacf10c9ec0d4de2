import type { Worker } from 'node:worker_threads'
import { openBatchProducer } from '@weir/kafka/batch-producer.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { type CrashPoint, noCrash } from '@weir/runtime/crash-point.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import { createDirectory } from './directory/directory.ts'
import { refuseEphemeral } from './directory/refuse-ephemeral.ts'
import type { WrittenCorrection } from './find-corrections.ts'
import { type JournalTopic, savedPartitions } from './format/topics-copy.ts'
import { PublisherState } from './publish/publisher-state.ts'
import { PublisherSupervisor } from './publish/publisher-supervisor.ts'
import type { Sink } from './publish/sink.ts'
import type { RecordLog } from './record-log.ts'
import { type RunningJournal, stopJournal } from './stop-journal.ts'
import { type JournalCounters, type JournalTrouble, type JournalWriter, openWriter } from './write/open-writer.ts'

export interface JournalOptions extends KafkaOptions {
  readonly log: Logger
  /** Where all journals of this machine are. */
  readonly base: string
  /** The first is that of decisions. Partitions are those to assume when neither Kafka nor the last start can tell. */
  readonly topics: readonly JournalTopic[]
  readonly maxBytes: number
  readonly fsyncMs?: number | undefined
  /** Also on a disk that does not outlive the container. */
  readonly isEphemeralAllowed: boolean
  readonly crash?: CrashPoint
  /** `WEIR_CRASH_AT`, for the publisher's thread. */
  readonly crashAt?: string
  /** Called when another process has taken the directory over: this process has to restart. */
  readonly onTakenAway: () => void
  /**
   * Called with the corrections in journals of dead processes, each before any record of that journal is sent and
   * removed.
   */
  readonly onCorrections?: (corrections: readonly WrittenCorrection[]) => void
  /** Given by tests and benches only. */
  readonly segmentBytes?: number
  readonly onThread?: (thread: Worker) => void
}

/** What waits for Kafka. */
export interface Backlog {
  /** Numbered, and not acknowledged. */
  readonly records: number
  /** On disk, those of dead processes included; in steps of a segment. */
  readonly bytes: number
  /** When the oldest of them was appended, in milliseconds since the epoch. */
  readonly oldestAppendMs: number | undefined
}

/** Since the process started. */
export interface PublishCounters {
  /** Acknowledged by Kafka. */
  readonly sent: number
  /** Batches that Kafka did not acknowledge; each was, or is being, sent again. */
  readonly failedAttempts: number
  /** Records that Kafka refused for good: each is in a file, with a gap record in its place. */
  readonly quarantined: number
}

/** How long a start waits to hear the partition counts. */
const startDeadlineMs = 2_000

/** What Kafka says, else what the last process wrote down, else what the caller assumes. */
async function currentTopics(options: JournalOptions): Promise<JournalTopic[]> {
  const { base, topics } = options
  const saved = savedPartitions(base)
  const sink: Sink = openBatchProducer(options)
  await withTimeout(
    sink.learn(topics.map(({ name }) => name)).catch(() => undefined),
    startDeadlineMs,
    undefined,
  )
  sink.close()
  return topics.map(({ name, partitions }) => ({
    name,
    partitions: sink.topic(name)?.partitions.length || (saved.get(name) ?? partitions),
  }))
}

/**
 * Opens a new journal and starts its publisher. Kafka may be away. Rejects with `JOURNAL_UNUSABLE` where the disk will
 * not do.
 */
export async function openJournal(options: JournalOptions): Promise<Journal> {
  const { base, crash = noCrash, log } = options
  refuseEphemeral(base, options.isEphemeralAllowed)
  const topics = await currentTopics(options)
  const directory = await createDirectory(base, topics, crash)
  const writer = await openWriter(directory, { ...options, topics, crash })
  const state = new PublisherState()
  const kafka = { trouble: '' }
  const supervisor = new PublisherSupervisor({
    start: {
      brokers: options.brokers,
      clientId: options.clientId,
      ...(options.security === undefined ? {} : { security: options.security }),
      base,
      journal: directory.journal,
      path: directory.path,
      topics,
      journalState: writer.state.shared,
      publisherState: state.shared,
      crashAt: options.crashAt,
    },
    log,
    onPartitions(topic, partitions) {
      const name = topics[topic]?.name
      log.warn({ topic: name, partitions }, 'the topic has another partition count; new records are spread over it')
      writer.setPartitions(topic, partitions)
    },
    onTrouble: (reason) => {
      kafka.trouble = reason
    },
    onCorrections: (corrections) => options.onCorrections?.(corrections),
    ...(options.onThread === undefined ? {} : { onThread: options.onThread }),
  })
  return new Journal({ directory, writer, state, kafka, supervisor, log })
}

interface JournalParts extends RunningJournal {
  readonly writer: JournalWriter
  readonly state: PublisherState
  readonly kafka: { readonly trouble: string }
}

/** A process's journal, and the thread that brings it to Kafka. Nothing here waits for Kafka but `drain`. */
export class Journal {
  readonly #parts: JournalParts
  #draining: Promise<{ readonly left: number }> | undefined

  constructor(parts: JournalParts) {
    this.#parts = parts
  }

  get id(): string {
    return this.#parts.directory.journal
  }

  /** By its place in the list of topics. */
  log(topic: number): RecordLog {
    return this.#parts.writer.log(topic)
  }

  get backlog(): Backlog {
    const { state, writer } = this.#parts
    const oldestMs = state.get('oldestMs')
    return {
      records: Math.max(0, writer.counters.numbered - state.get('sent')),
      bytes: writer.usedBytes,
      oldestAppendMs: oldestMs === 0 ? undefined : oldestMs,
    }
  }

  get counters(): JournalCounters & PublishCounters {
    const { state, writer } = this.#parts
    const [sent, failedAttempts, quarantined] = [
      state.get('sent'),
      state.get('failedAttempts'),
      state.get('quarantined'),
    ]
    return { ...writer.counters, sent, failedAttempts, quarantined }
  }

  get maxBytes(): number {
    return this.#parts.writer.maxBytes
  }

  /** What keeps it from taking records now. */
  get trouble(): JournalTrouble | undefined {
    return this.#parts.writer.trouble
  }

  /** Why Kafka does not take the records; empty while it does. */
  get unsentFor(): string {
    return this.#parts.kafka.trouble
  }

  /** Journals of dead processes that are being sent. */
  get adopted(): number {
    return this.#parts.state.get('adopted')
  }

  /** Copies that Kafka keeps of the records, at least; undefined until it has said so. */
  get replicas(): number | undefined {
    return this.#parts.state.get('replicas') || undefined
  }

  /**
   * Takes no more records and waits at most so long until Kafka has the rest, if the disk took all. What Kafka has not
   * stays in the directory, for the next process that starts or looks; says how many records, without sums that have no
   * number yet.
   */
  drain(deadlineMs: number): Promise<{ readonly left: number }> {
    this.#draining ??= stopJournal(this.#parts, deadlineMs).then((isDrained) => ({
      left: isDrained ? 0 : this.backlog.records,
    }))
    return this.#draining
  }
}
