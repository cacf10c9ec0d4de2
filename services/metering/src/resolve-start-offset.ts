import type { TopicIdPartition } from '@weir/clickhouse/number-queries.ts'
import { noCommitMetadata, parseCommitMetadata } from '@weir/contracts/commit-metadata.v2.ts'
import { formatTs } from '@weir/contracts/timestamp.ts'
import type { PartitionFacts } from '@weir/kafka/partition-admin.ts'

/** What Kafka and ClickHouse know of a partition. */
export interface OffsetFacts extends PartitionFacts {
  readonly partition: number
  /** The last offset that ClickHouse has, in this incarnation of the topic. */
  readonly lastInserted: bigint | undefined
}

/** Offsets that Kafka deleted before they were read: both included. */
export interface ExpiredRange {
  readonly from: bigint
  readonly to: bigint
}

/** The resume position of a partition; or why it is not read. */
export type StartOffset =
  | {
      readonly kind: 'begin'
      /** The first offset to read. */
      readonly offset: bigint
      readonly expired: ExpiredRange | undefined
      /** Rows up to here may be there without a commit, because a person moved the offset. */
      readonly seekOverrideUpTo: bigint | undefined
    }
  | { readonly kind: 'stop'; readonly reason: string }

const seek = 'weir metering seek --partition P --to'

function stopAhead(offset: bigint, { end }: OffsetFacts): StartOffset {
  return {
    kind: 'stop',
    reason: `AHEAD_OF_THE_LOG: offset ${offset} is committed, but Kafka's log ends at ${end}: Kafka lost records that were already metered. Stop metering, run ${seek} clickhouse (if that is refused, --to ${end}), start metering, then run weir audit`,
  }
}

function stopWithoutCommit(committed: string, { lastInserted }: OffsetFacts): StartOffset {
  return {
    kind: 'stop',
    reason: `ROWS_WITHOUT_COMMIT: ClickHouse has rows up to offset ${lastInserted}, but ${committed}: old rows cannot be told from new ones. Look why, stop metering, and run ${seek} clickhouse`,
  }
}

/** Begins at an offset, or at the log's first if that is later: what lies between has expired. */
function beginAt(wanted: bigint, { first }: OffsetFacts, seekOverrideUpTo: bigint | undefined): StartOffset {
  const offset = wanted < first ? first : wanted
  const expired = wanted < first ? { from: wanted, to: first - 1n } : undefined
  const isPassed = (seekOverrideUpTo ?? -1n) < offset
  return { kind: 'begin', offset, expired, seekOverrideUpTo: isPassed ? undefined : seekOverrideUpTo }
}

/**
 * Compares the committed offset, which no block waits at any more, with what the log and ClickHouse have. Rows that
 * ClickHouse lacks behind the commit are read again; a state from which reading on would lose or repeat a record stops
 * the partition.
 */
export function resolveStartOffset(facts: OffsetFacts): StartOffset {
  const { partition, committed, first, topicId, end, lastInserted } = facts
  const metadata = committed === undefined ? noCommitMetadata : parseCommitMetadata(committed.metadata, partition)
  if (committed === undefined || (metadata.topicId ?? topicId) !== topicId) {
    if (lastInserted === undefined) return beginAt(first, facts, undefined)
    return stopWithoutCommit('nothing is committed', facts)
  }
  const { offset } = committed
  const { seekOverrideUpTo } = metadata
  if (offset > end) return stopAhead(offset, facts)
  if (lastInserted !== undefined && lastInserted >= offset) {
    if (seekOverrideUpTo === undefined || seekOverrideUpTo < lastInserted) {
      return stopWithoutCommit(`${offset} is committed`, facts)
    }
    return beginAt(offset, facts, lastInserted)
  }
  if (seekOverrideUpTo !== undefined) return beginAt(offset, facts, undefined)
  if (lastInserted !== undefined) return beginAt(lastInserted + 1n, facts, undefined)
  // An empty ClickHouse gets all that Kafka has.
  return offset > first ? beginAt(first, facts, undefined) : beginAt(offset, facts, undefined)
}

/** Returns the row of `weir.gaps` for offsets that Kafka deleted unread: the same row however often it is noticed. */
export function expiredRow({ topic, topicId, partition }: TopicIdPartition, { from, to }: ExpiredRange): object {
  const unknown = formatTs(0)
  return {
    cause: 'expired',
    topic,
    topic_id: topicId,
    partition,
    journal: '00000000-0000-0000-0000-000000000000',
    from_seq: 0,
    to_seq: 0,
    from_offset: Number(from),
    to_offset: Number(to),
    count: Number(to - from) + 1,
    from_ts: unknown,
    to_ts: unknown,
    detail: 'the log starts after the committed offset',
  }
}
