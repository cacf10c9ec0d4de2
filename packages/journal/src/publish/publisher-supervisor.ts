import { Worker } from 'node:worker_threads'
import type { KafkaLog } from '@weir/kafka/connect.ts'
import { retryDelayMs } from '@weir/kafka/retry-delay.ts'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import type { WrittenCorrection } from '../find-corrections.ts'
import type { FromPublisher, PublisherStart, ToPublisher } from './publisher-messages.ts'

const program = new URL('./publisher-thread.ts', import.meta.url)

/** A thread that ran for this long did not die of the fault that killed the one before. */
const soundMs = 60_000

/** Closing files takes milliseconds. */
const endDeadlineMs = 2_000

/** What it runs and whom it tells. */
export interface SupervisorOptions {
  readonly start: PublisherStart
  readonly log: KafkaLog
  /** Kafka has another partition count for a topic, by its place in the list. */
  readonly onPartitions: (topic: number, partitions: number) => void
  /** Journals that were taken over, and are about to be sent, have these corrections. */
  readonly onCorrections: (corrections: readonly WrittenCorrection[]) => void
  /** Why Kafka takes nothing, or not all; empty once it does, or another thread begins. */
  readonly onTrouble?: (reason: string) => void
  /** Given by tests only: sees each thread. */
  readonly onThread?: (thread: Worker) => void
}

/** Keeps a publisher's thread running: another one takes the place of one that died. */
export class PublisherSupervisor {
  readonly #options: SupervisorOptions
  readonly #drained = Promise.withResolvers<true>()
  #thread: Worker | undefined
  #restart: NodeJS.Timeout | undefined
  #startedMs = 0
  #deaths = 0
  #isDraining = false
  #isEnding = false

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
    if (this.#isDraining) this.#say({ kind: 'drain' })
  }

  #say(message: ToPublisher): void {
    this.#thread?.postMessage(message)
  }

  #hear(message: FromPublisher): void {
    if (message.kind === 'partitions') this.#options.onPartitions(message.topic, message.partitions)
    else if (message.kind === 'trouble') this.#options.onTrouble?.(message.reason)
    else if (message.kind === 'corrections') this.#options.onCorrections(message.corrections)
    else if (message.kind === 'drained') this.#drained.resolve(true)
    else this.#options.log[message.level](message.fields, message.event)
  }

  #bury(code: number, reason: string): void {
    this.#thread = undefined
    this.#options.onTrouble?.('')
    if (this.#isEnding) return
    this.#deaths = performance.now() - this.#startedMs > soundMs ? 1 : this.#deaths + 1
    const inMs = retryDelayMs(this.#deaths)
    this.#options.log.error({ code, reason, inMs }, 'the publisher died; another one goes on from the journal')
    this.#restart = setTimeout(() => this.#launch(), inMs)
  }

  /** True once all is sent; false at the deadline. Nothing may be appended any more. */
  async drain(deadlineMs: number): Promise<boolean> {
    this.#isDraining = true
    this.#say({ kind: 'drain' })
    return withTimeout(this.#drained.promise, deadlineMs, false)
  }

  /** Ends the thread; it writes down what Kafka has. */
  async end(): Promise<void> {
    this.#isEnding = true
    clearTimeout(this.#restart)
    const thread = this.#thread
    if (thread === undefined) return
    const gone = new Promise<true>((resolve) => thread.once('exit', () => resolve(true)))
    this.#say({ kind: 'end' })
    if (!(await withTimeout(gone, endDeadlineMs, false))) await thread.terminate()
  }
}
