import type { TopicIdPartition } from '@weir/clickhouse/number-queries.ts'
import type { InDoubtBlock, RepairReport } from '@weir/clickhouse/repair/repair-block.ts'

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

/** A block that was sent again, although the first request may have inserted it. */
export interface RetriedBlock extends InDoubtBlock {
  /** Of its last record: ClickHouse cannot have accepted the block before. */
  readonly timestampMs: number
}

export interface UsageStore {
  /** `signal` ends the waiting; the server may go on with what it has. */
  insert(block: RowBlock, signal: AbortSignal): Promise<InsertOutcome>
  /** Whether an insert whose token begins so is still at work in ClickHouse. */
  isInserting(token: string): Promise<boolean>
  /** Each journal's highest number among the rows before an offset; of all rows without one. */
  numbersBefore(partition: TopicIdPartition, offset: bigint | undefined): Promise<ReadonlyMap<string, number>>
  /** Makes sure that every table has a retried block once. Undefined where ClickHouse was not restarted, so that its tokens are right. */
  repair(
    block: RetriedBlock,
    options: { readonly signal: AbortSignal; readonly isFenced: () => boolean },
  ): Promise<RepairReport | undefined>
  lastInserted(partition: TopicIdPartition): Promise<bigint | undefined>
}

export interface DeadLetterSink {
  /** Resolves when all of them are safely kept. */
  send(partition: number, letters: readonly DeadLetter[]): Promise<void>
}
