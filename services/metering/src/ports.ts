import type { InsertRequest } from '@weir/clickhouse/insert.ts'
import type { TopicIdPartition } from '@weir/clickhouse/number-queries.ts'
import type { InDoubtBlock, RepairReport } from '@weir/clickhouse/repair/repair-block.ts'
import type { ConsumedRecord } from '@weir/kafka/record-batch.ts'

/** One record of a partition, as metering sees it. */
export type BlockRecord = Omit<ConsumedRecord, 'offset' | 'key' | 'headers'>

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

/** A row of `weir.marks`: a journal's watermark. */
export interface WatermarkRow {
  readonly topic: string
  readonly partition: number
  readonly journal: string
  readonly mark: string
  readonly seq: number
  readonly end: boolean
}

/** Rows for `weir.numbers`, `weir.marks` and `weir.gaps`. Each may come twice without harm. */
export interface BookkeepingRows {
  readonly numbers: readonly object[]
  readonly marks: readonly WatermarkRow[]
  readonly gaps: readonly object[]
}

/** Rows on their way to one shard; of no shard: to any, or to the one server. */
export interface ShardInsert extends InsertRequest {
  readonly shard?: string | undefined
}

/** A block of which rows may be there. */
export interface ShardBlock extends InDoubtBlock {
  readonly shard?: string | undefined
}

/** A block that was sent again, although the first request may have inserted it. */
export interface RetriedBlock extends ShardBlock {
  /** Of its last record: ClickHouse cannot have accepted the block before. */
  readonly timestampMs: number
}

/** The shards of a cluster, among which partitions are dealt out. A block has partitions of one of them. */
export interface Shards {
  readonly count: number
  /** Resolves to the name of the shard that a partition's next block is inserted on. */
  nameFor(partition: number): Promise<string>
}

/** ClickHouse as metering needs it. Every method rejects while ClickHouse is unavailable, and may be called again. */
export interface UsageStore {
  /** Of a cluster, where a block's rows are given their time: a repeat has the same bytes. Absent: one server. */
  readonly shards?: Shards | undefined
  /**
   * `signal` ends the request; the server may go on with what it has.
   *
   * @returns ClickHouse's words if it refuses the rows themselves, so that it will refuse them again.
   */
  insert(request: ShardInsert, signal: AbortSignal): Promise<Error | undefined>
  /** Whether ClickHouse still works on an insert whose deduplication token begins so. */
  isInsertRunning(dedupToken: string, shard?: string): Promise<boolean>
  /** Each journal's highest number among the rows before an offset; of all rows if that is undefined. */
  numbersBefore(partition: TopicIdPartition, offset: bigint | undefined): Promise<ReadonlyMap<string, number>>
  /** Whether the raw table has any row of a block. */
  hasRows(block: ShardBlock): Promise<boolean>
  /**
   * Makes sure that every table has a retried block once. Undefined if ClickHouse was not restarted in between, unless
   * the comparison is forced.
   */
  repair(
    block: RetriedBlock,
    options: { readonly signal: AbortSignal; readonly isFenced: () => boolean; readonly isForced: boolean },
  ): Promise<RepairReport | undefined>
  lastInserted(partition: TopicIdPartition): Promise<bigint | undefined>
}

/** Where unreadable records are kept. */
export interface DeadLetterSink {
  /** Resolves when all of them are safely stored. */
  send(partition: number, deadLetters: readonly DeadLetter[]): Promise<void>
}
