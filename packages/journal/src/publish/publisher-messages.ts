import type { KafkaSecurity } from '@weir/kafka/security.ts'
import type { WrittenCorrection } from '../find-corrections.ts'
import type { JournalTopic } from '../format/topics-copy.ts'

/** What the publisher's thread is started with. */
export interface PublisherStart {
  readonly brokers: readonly string[]
  readonly clientId: string
  readonly security?: KafkaSecurity
  /** Where all journals are. */
  readonly base: string
  readonly journal: string
  /** This process's directory. */
  readonly path: string
  readonly topics: readonly JournalTopic[]
  readonly journalState: SharedArrayBuffer
  readonly publisherState: SharedArrayBuffer
  /** `WEIR_CRASH_AT`. */
  readonly crashAt: string | undefined
}

/** `drain`: nothing more is appended; send all and the end marks. `end`: write down what Kafka has and stop. */
export type ToPublisher = { readonly kind: 'drain' } | { readonly kind: 'end' }

export type FromPublisher =
  /** Kafka says that a topic, by its place in the list, has so many partitions. */
  | { readonly kind: 'partitions'; readonly topic: number; readonly partitions: number }
  /** Why Kafka takes nothing, or not all; empty once it does. */
  | { readonly kind: 'trouble'; readonly reason: string }
  /** These stand in journals of dead processes that are about to be sent. */
  | { readonly kind: 'corrections'; readonly corrections: readonly WrittenCorrection[] }
  /** All of this process's journal is acknowledged, with its end marks. */
  | { readonly kind: 'drained' }
  | {
      readonly kind: 'log'
      readonly level: 'debug' | 'info' | 'warn' | 'error'
      readonly fields: object
      readonly event: string
    }
