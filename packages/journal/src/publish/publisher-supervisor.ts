import { Worker } from 'node:worker_threads'
import type { KafkaLog, KafkaOptions } from '@weir/kafka/connect.ts'
import { retryDelayMs } from '@weir/kafka/retry-delay.ts'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import type { WrittenCorrection } from '../find-corrections.ts'
import type { JournalTopic } from '../format/state-files.ts'
import type { TracedBatch } from './traced-batch.ts'

const program = new URL('./publisher-thread.ts', import.meta.url)

/** A thread that ran for this long did not die of the fault that killed the one before. */
const soundMs = 60_000

/** Closing files takes milliseconds. */
const endDeadlineMs = 2_000

/** What the publisher's thread is started with. */
export interface PublisherStart extends Pick<KafkaOptions, 'brokers' | 'clientId' | 'security'> {
  /** Where all journals are. */
  readonly base: string
  readonly journal: string
  /** This process's directory. */
  readonly path: string
  readonly topics: readonly JournalTopic[]
  /** Of `JournalState`. */
  readonly shared: SharedArrayBuffer
  /** `WEIR_CRASH_AT`. */
  readonly crashAt?: string | undefined
  /** Whether traced decisions are told once Kafka has them. */
  readonly isTraced?: boolean
}

/** `drain`: nothing more is appended; send all and the end watermarks. `end`: write down what Kafka has and stop. */
export type ToPublisher = 'drain' | 'end'

/** What the publisher's thread reports. */
export type FromPublisher =
  /** Kafka says that a topic, by its index in the list, has so many partitions. */
  | { readonly kind: 'partitions'; readonly topic: number; readonly partitions: number }
  /** Why Kafka takes nothing, or not all; empty once it does. */
  | { readonly kind: 'trouble'; readonly reason: string }
  /** These stand in journals of dead processes that are about to be sent. */
  | { readonly kind: 'corrections'; readonly corrections: readonly WrittenCorrection[] }
  | { readonly kind: 'traced'; readonly batch: TracedBatch }
  /** All of this process's journal is acknowledged, with its end watermarks. */
  | { readonly kind: 'drained' }
  | { readonly kind: 'log'; readonly level: keyof KafkaLog; readonly fields: object; readonly event: string }

/** What a supervisor runs, and what it calls for what the thread reports. */
export interface SupervisorOptions {
  readonly start: PublisherStart
  readonly log: KafkaLog
  readonly onPartitions: (topic: number, partitions: number) => void
  readonly onCorrections: (corrections: readonly WrittenCorrection[]) => void
  readonly onTraced?: ((batch: TracedBatch) => void) | undefined
  /** Given by tests only: sees each thread. */
  readonly onThread?: ((thread: Worker) => void) | undefined
}

/** Keeps a publisher's thread running: one that died is replaced. */
export class PublisherSupervisor {
  readonly #options: SupervisorOptions
  readonly #drained = Promise.withResolvers<true>()
  #thread: Worker | undefined
  #restart: NodeJS.Timeout | undefined
  #startedMs = 0
  #deaths = 0
  #isDraining = false
  #isEnding = false
  /** Why Kafka takes nothing, or not all; empty while it does, or when a new thread begins. */
  trouble = ''

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#launch()
  }

  #launch(): void {
    const thread = new Worker(program, { workerData: this.#options.start, name: 'publisher' })
    this.#thread = thread
    this.#startedMs = performance.now()
    let reason = ''
    thread.on('message', (message: FromPublisher) => this.#hear(message))
    thread.on('error', (error) => {
      reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
    })
    thread.once('exit', (code) => this.#bury(code, reason))
    this.#options.onThread?.(thread)
    if (this.#isDraining) this.#say('drain')
  }

  #say(message: ToPublisher): void {
    this.#thread?.postMessage(message)
  }

  #hear(message: FromPublisher): void {
    if (message.kind === 'partitions') this.#options.onPartitions(message.topic, message.partitions)
    else if (message.kind === 'trouble') this.trouble = message.reason
    else if (message.kind === 'corrections') this.#options.onCorrections(message.corrections)
    else if (message.kind === 'traced') this.#options.onTraced?.(message.batch)
    else if (message.kind === 'drained') this.#drained.resolve(true)
    else this.#options.log[message.level](message.fields, message.event)
  }

  #bury(code: number, reason: string): void {
    this.#thread = undefined
    this.trouble = ''
    if (this.#isEnding) return
    this.#deaths = performance.now() - this.#startedMs > soundMs ? 1 : this.#deaths + 1
    const inMs = retryDelayMs(this.#deaths)
    this.#options.log.error({ code, reason, inMs }, 'the publisher died; a new one continues from the journal')
    this.#restart = setTimeout(() => this.#launch(), inMs)
  }

  /** True once all is sent; false at the deadline. Nothing may be appended any more. */
  async drain(deadlineMs: number): Promise<boolean> {
    this.#isDraining = true
    this.#say('drain')
    return withTimeout(this.#drained.promise, deadlineMs, false)
  }

  /** Ends the thread; it writes down what Kafka has. */
  async end(): Promise<void> {
    this.#isEnding = true
    clearTimeout(this.#restart)
    const thread = this.#thread
    if (thread === undefined) return
    // `events.once` would reject when the thread dies of an error, and the directory would stay held.
    const exit = new Promise<true>((resolve) => thread.once('exit', () => resolve(true)))
    this.#say('end')
    if (!(await withTimeout(exit, endDeadlineMs, false))) await thread.terminate()
  }
}
