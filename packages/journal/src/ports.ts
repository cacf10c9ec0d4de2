import type { JournalState } from './format/journal-state.ts'
import type { Damage } from './read/frame-source.ts'
import type { RecordLog } from './record-log.ts'

/** A topic that a journal carries, by its place in the list. */
export interface JournalTopic {
  readonly name: string
  /** Over so many partitions its records are spread. */
  readonly partitions: number
}

/** A journal's directory that this process holds: its socket listens until `release`. */
export interface HeldDirectory {
  /** A UUID; `journal` in every record. */
  readonly journal: string
  readonly path: string
  /**
   * Whether it still stands where it was made; a socket that somebody removed is put back. False means that another process took it
   * for dead: what is written from now on may never be read.
   */
  isOurs(): Promise<boolean>
  /** Stops listening: from now on any process may adopt it. What is in it stays. */
  release(): Promise<void>
}

/** A record as it goes to Kafka. */
export interface JournalRecord {
  /** Place in `JournalReader.topics`. */
  readonly topic: number
  readonly partition: number
  /** Contiguous in its topic and partition. */
  readonly seq: number
  readonly key: Buffer
  /** The finished line, with journal and number. */
  readonly value: Buffer
  readonly appendedMs: number
  /** Must stay on disk until Kafka has the record. */
  readonly segment: number
}

/**
 * Reads one directory from what Kafka is not known to have on, in order. Not safe for two at once. Files are read synchronously, so it
 * belongs on a thread of its own.
 */
export interface JournalReader {
  readonly journal: string
  readonly topics: readonly JournalTopic[]
  /**
   * The next records, of about so many bytes; none when nothing more is committed at present. Of a dead directory, the sums left
   * open and the gap page come as its last records, under the next numbers; two readers of it number them alike.
   */
  read(bytesMax: number): JournalRecord[]
  /** Kafka has them, or they are in quarantine and Kafka has a gap record in their place. In order within each partition. */
  acknowledge(records: readonly JournalRecord[]): void
  /** Writes down what Kafka has and deletes the segments that nobody needs any more. To be called now and then, and at the end. */
  save(): void
  /** The oldest segment still on disk. */
  readonly firstSegment: number
  /** Bytes of segments still on disk. */
  readonly bytes: number
  /** Records read and not acknowledged. */
  readonly unacknowledged: number
  /** Places passed over because nothing could be read there; metering sees what is missing by the numbers. */
  readonly damage: readonly Damage[]
  /** Of a dead directory: all is read and acknowledged. Always false of a live one. */
  readonly isDrained: boolean
  /** By topic and partition: the number that follows the last one acknowledged. */
  readonly acknowledgedUpTo: readonly (readonly number[])[]
  /** The number that follows the last record read of this partition. */
  nextSeq(topic: number, partition: number): number
  close(): void
}

/** Why the journal takes nothing at present. */
export type JournalTrouble = 'full' | 'stalled' | 'disk-error' | 'taken-away' | 'closed'

/** Of all topics together, since the process started. */
export interface JournalCounters {
  readonly appended: number
  /** Records, closed sums and gap records that stand in the journal, or are about to: what Kafka is to have in the end. */
  readonly numbered: number
  readonly refused: number
  /** Decisions that the journal was given and does not have: counted in its gap page. */
  readonly gaps: number
  readonly writes: number
  /** Writes that took longer than the watchdog allows. */
  readonly slowWrites: number
  readonly failedWrites: number
}

/** Writes one directory, on the main thread. */
export interface JournalWriter {
  readonly journal: string
  /** To be handed to the publisher's thread: `state.shared`. */
  readonly state: JournalState
  /** By its place in the list of topics. */
  log(topic: number): RecordLog
  /** Spreads new records of a topic over another number of partitions, and writes that down for whoever reads the directory. */
  setPartitions(topic: number, partitions: number): void
  readonly counters: JournalCounters
  /** What keeps it from taking records now; undefined when nothing does. */
  readonly trouble: JournalTrouble | undefined
  /** Of the bound: segments not yet deleted, and adopted directories. */
  readonly usedBytes: number
  readonly maxBytes: number
  /**
   * Closes all sums, writes the last turn and stops. The directory stays held. False if the disk did not take all,
   * or decisions are left in the gap page: then only who takes the directory over can bring it to its end.
   */
  close(): Promise<boolean>
}

/** What Kafka refused for good, and where it is kept for a person. */
export interface Quarantined {
  readonly path: string
}
