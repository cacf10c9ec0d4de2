/** One record of a partition, as metering sees it: a consumed record is one. */
export interface BlockRecord {
  readonly position: number
  readonly timestampMs: number
  /** What the value is a part of. */
  readonly bytes: Buffer
  /** -1 for a record without value. */
  readonly valueStart: number
  readonly valueEnd: number
  readonly value: Buffer | null
}

/** A record that could not be read, kept whole for a person. */
export interface DeadLetter {
  readonly message: BlockRecord
  readonly reason: string
}

/** Rows of one month, in the order of their offsets. */
export interface MonthLines {
  /** `YYYY-MM`. */
  readonly month: string
  readonly lines: Buffer
  readonly rows: number
}

/** A row of weir.marks. */
export interface MarkRow {
  readonly topic: string
  readonly partition: number
  readonly journal: string
  readonly mark: string
  readonly seq: number
  readonly end: boolean
}

/** Rows for weir.numbers, weir.marks and weir.gaps. Each may come twice without harm. */
export interface SideRows {
  readonly numbers: readonly object[]
  readonly marks: readonly MarkRow[]
  readonly gaps: readonly object[]
}

/** One insert. */
export interface RowBlock {
  readonly table: string
  readonly lines: Buffer
  /** Names exactly these rows, and the request while it runs. */
  readonly token: string
}

/** What an insert came to. `unreadable`: the data itself was refused, sending it again cannot help. */
export type InsertOutcome =
  | { readonly kind: 'inserted' }
  | { readonly kind: 'unreadable'; readonly error: Error }
  | { readonly kind: 'unavailable'; readonly error: Error }

/** One partition in one life of its topic. */
export interface PartitionLife {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
}

/** A block that was inserted again. */
export interface RepeatedBlock extends PartitionLife {
  readonly table: string
  readonly token: string
  readonly months: readonly Buffer[]
  /** Of its last record: it cannot have been inserted before. */
  readonly timestampMs: number
}

/** What of a repeated block ClickHouse did not have. */
export interface Mended {
  readonly rows: number
  readonly rollups: readonly string[]
  readonly unsure: readonly string[]
}

export interface UsageStore {
  /** `signal` ends the waiting; the server may go on with what it has. */
  insert(block: RowBlock, signal: AbortSignal): Promise<InsertOutcome>
  /** Whether an insert whose token begins so is still at work in ClickHouse. */
  isInserting(token: string): Promise<boolean>
  /** Each journal's highest number among the rows before an offset; of all rows without one. */
  numbersBefore(life: PartitionLife, offset: bigint | undefined): Promise<ReadonlyMap<string, number>>
  /** Makes sure that a repeated block is in every table, once; undefined if it needs no looking, for ClickHouse was not restarted. */
  mend(
    block: RepeatedBlock,
    options: { readonly signal: AbortSignal; readonly isStale: () => boolean },
  ): Promise<Mended | undefined>
  lastInserted(life: PartitionLife): Promise<bigint | undefined>
}

export interface DeadLetterSink {
  /** Resolves when all of them are safely kept. */
  send(partition: number, letters: readonly DeadLetter[]): Promise<void>
}
