import type { Worker } from 'node:worker_threads'
import { openBatchProducer } from '@weir/kafka/batch-producer.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { type CrashPoint, noCrash } from '@weir/runtime/crash-point.ts'
import type { Histogram } from '@weir/runtime/histogram.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import { createDirectory, type DirectoryLock, refuseEphemeral, removeDirectory } from './directory/directory.ts'
import type { WrittenCorrection } from './find-corrections.ts'
import { type JournalTopic, readTopicsCopy } from './format/state-files.ts'
import { PublisherSupervisor } from './publish/publisher-supervisor.ts'
import type { Sink } from './publish/sink.ts'
import type { TracedBatch } from './publish/traced-batch.ts'
import type { RecordLog } from './record-log.ts'
import {
  type JournalCounters,
  type JournalTrouble,
  type JournalWriter,
  openWriter,
  type WriterOptions,
} from './write/open-writer.ts'

/**
 * How a process opens its journal. The partitions of `topics` are those to assume when neither Kafka nor the last start
 * can tell.
 */
export interface JournalOptions extends KafkaOptions, Omit<WriterOptions, 'disk'> {
  readonly log: Logger
  /** Where all journals of this machine are. */
  readonly base: string
  /** Also on a disk that does not outlive the container. */
  readonly isEphemeralAllowed: boolean
  /** `WEIR_CRASH_AT`, for the publisher's thread. */
  readonly crashAt?: string
  /** Called when another process has taken the directory over: this process has to restart. */
  readonly onTakenAway: () => void
  /**
   * Called with the corrections in journals of dead processes, each before any record of that journal is sent and
   * removed.
   */
  readonly onCorrections?: (corrections: readonly WrittenCorrection[]) => void
  /** Called for batches with traced decisions once Kafka has them, also of dead processes; undefined for no traces. */
  readonly onTraced?: ((batch: TracedBatch) => void) | undefined
  /** Given by tests and benches only. */
  readonly onThread?: (thread: Worker) => void
}

/** How long a start waits to hear the partition counts. */
const startDeadlineMs = 2_000

/** What Kafka says, else what the last process wrote down, else what the caller assumes. */
async function currentTopics(options: JournalOptions): Promise<JournalTopic[]> {
  const { base, topics } = options
  const saved = new Map((readTopicsCopy(base) ?? []).map(({ name, partitions }) => [name, partitions]))
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
  const { brokers, clientId, security, crashAt, onThread, onTraced } = options
  const { journal, path } = directory
  const { shared } = writer.state
  const isTraced = onTraced !== undefined
  const supervisor = new PublisherSupervisor({
    start: { brokers, clientId, security, base, journal, path, topics, shared, crashAt, isTraced },
    log,
    onPartitions(topic, partitions) {
      const name = topics[topic]?.name
      log.warn({ topic: name, partitions }, 'the topic has a new partition count; new records are spread over it')
      writer.setPartitions(topic, partitions)
    },
    onCorrections: (corrections) => options.onCorrections?.(corrections),
    onTraced,
    onThread,
  })
  return new Journal({ directory, writer, supervisor, log })
}

interface JournalParts {
  readonly directory: DirectoryLock
  readonly writer: JournalWriter
  readonly supervisor: PublisherSupervisor
  readonly log: Logger
}

/** A process's journal, and the thread that brings it to Kafka. Nothing here waits for Kafka but `drain`. */
export class Journal {
  readonly #parts: JournalParts
  #draining: Promise<boolean> | undefined

  constructor(parts: JournalParts) {
    this.#parts = parts
  }

  get id(): string {
    return this.#parts.directory.journal
  }

  /** By its index in the list of topics. */
  log(topic: number): RecordLog {
    return this.#parts.writer.log(topic)
  }

  /**
   * What waits for Kafka: records that have a number; bytes on disk with those of dead processes, in steps of a
   * segment; and when the oldest record was appended, in milliseconds since the epoch.
   */
  get backlog() {
    const { writer } = this.#parts
    return {
      records: Math.max(0, writer.counters.numbered - this.#sum('sent')),
      bytes: writer.usedBytes,
      oldestAppendMs: writer.state.get('oldestMs') || undefined,
    }
  }

  /**
   * Since the process started. Kafka has acknowledged what is `sent`; a batch of `failedAttempts` was, or is being,
   * sent again; each of `quarantined` is in a file, and Kafka has a gap record instead.
   */
  get counters(): JournalCounters & Readonly<Record<'sent' | 'failedAttempts' | 'quarantined', number>> {
    const { counters, state } = this.#parts.writer
    const failedAttempts = state.get('failedAttempts')
    return { ...counters, failedAttempts, sent: this.#sum('sent'), quarantined: this.#sum('quarantined') }
  }

  #sum(field: 'sent' | 'quarantined'): number {
    const { state } = this.#parts.writer
    return state.get(field, 0) + state.get(field, 1)
  }

  /** The same of one topic, by its index in the list, and what its callers gave. */
  countsOf(topic: number) {
    const { writer } = this.#parts
    const { state } = writer
    return { ...writer.countsOf(topic), sent: state.get('sent', topic), quarantined: state.get('quarantined', topic) }
  }

  /** `write`: of each write to the disk. `publish`: from the append of a batch's oldest record until Kafka has it. */
  get durations(): { readonly write: Histogram; readonly publish: Histogram } {
    const { writer } = this.#parts
    return { write: writer.writeDuration, publish: writer.state.publishDuration }
  }

  get maxBytes(): number {
    return this.#parts.writer.maxBytes
  }

  /** What keeps it from taking records now. */
  get trouble(): JournalTrouble | undefined {
    return this.#parts.writer.trouble
  }

  /** The disk had no space for the next segment when last asked: what fits into the present one is still taken. */
  get isOutOfSpace(): boolean {
    return this.#parts.writer.isOutOfSpace
  }

  /** Why Kafka does not take the records; empty while it does. */
  get unsentFor(): string {
    return this.#parts.supervisor.trouble
  }

  /** Journals of dead processes that are being sent. */
  get adopted(): number {
    return this.#parts.writer.state.get('adopted')
  }

  /** Whether Kafka keeps one copy of some records although it has several brokers. */
  get lacksCopies(): boolean {
    const { state } = this.#parts.writer
    return state.get('replicas') === 1 && state.get('brokers') > 1
  }

  /**
   * Stops the journal and returns how many records are left in its directory for the next process, without sums that
   * have no number yet.
   */
  async drain(deadlineMs: number): Promise<{ readonly left: number }> {
    this.#draining ??= stopJournal(this.#parts, deadlineMs)
    return { left: (await this.#draining) ? 0 : this.backlog.records }
  }
}

/**
 * Refuses further records and waits up to `deadlineMs` until Kafka has the rest. True when it has, and the directory is
 * gone. What the disk did not take cannot be closed here: sums left open and the gap file are read from a dead
 * directory only, so it gets no end watermarks, and stays.
 */
export async function stopJournal(
  {
    directory,
    writer,
    supervisor,
    log,
  }: Omit<JournalParts, 'supervisor'> & { readonly supervisor: Pick<PublisherSupervisor, 'drain' | 'end'> },
  deadlineMs: number,
): Promise<boolean> {
  const isWritten = await writer.close()
  if (!isWritten) log.error('the disk did not accept the last records: the next process closes this journal')
  const isDrained = isWritten && (await supervisor.drain(deadlineMs))
  await supervisor.end()
  await directory.release()
  if (!isDrained) return false
  try {
    removeDirectory(directory.path)
  } catch {
    // It holds journals of dead processes that are not sent yet; the next process takes them over.
  }
  return true
}
