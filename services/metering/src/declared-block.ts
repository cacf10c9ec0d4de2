import { createHash } from 'node:crypto'
import {
  encodeRanges,
  type InsertIntent,
  noCommitMetadata,
  type OffsetRange,
  parseCommitMetadata,
} from '@weir/contracts/commit-metadata.v2.ts'
import type { OffsetFacts } from './resolve-start-offset.ts'

/*
 * A block is declared in one place: the metadata of its first partition, the lead. Its other partitions, the members,
 * are committed before the lead, which is committed last and alone. So a lead that declares a block says that the block
 * may not be finished, and a lead that declares none says that every member is behind it.
 */

/** What a group has committed for a partition. */
export interface Committed {
  readonly offset: bigint
  readonly metadata: string
}

/** Hexadecimal digits of a block's id: 128 bits. */
const idLength = 32

/**
 * Names the rows of a block in every incarnation of the topic. The token of a block of one range is what it was before
 * blocks had several, so that a block of an older version is recovered under its own.
 */
export function dedupTokenOf(topicId: string, ranges: readonly OffsetRange[]): string {
  const [first, second] = ranges
  if (first !== undefined && second === undefined) return `${topicId}:${first.partition}:${first.from}-${first.to}`
  const id = createHash('sha256').update(`${topicId} ${encodeRanges(ranges)}`)
  return `${topicId}:${id.digest('hex').slice(0, idLength)}`
}

const readCommitted = (committed: Committed | undefined, partition: number, topicId: string) => {
  const metadata = committed === undefined ? noCommitMetadata : parseCommitMetadata(committed.metadata, partition)
  return metadata.topicId === undefined || metadata.topicId === topicId ? metadata : noCommitMetadata
}

/** Returns the block that a partition's metadata declares, if it is one of this incarnation of the topic. */
export const declaredBy = (committed: Committed | undefined, partition: number, topicId: string) =>
  readCommitted(committed, partition, topicId).intent

/**
 * Where a partition stands towards a block that names it.
 *
 * - `pending`: where the block begins. Only the owner of the lead moves it.
 * - `done`: behind the block. Members are committed after everything else, so all of the block's rows are inserted.
 * - `moved`: a person has moved its offset since. Its rows are not the block's business any more.
 */
export type Standing = 'pending' | 'done' | 'moved'

/** Returns where a partition stands towards a block. */
export function standingOf(
  { partition, from, to }: OffsetRange,
  committed: Committed | undefined,
  lead: number,
  topicId: string,
): Standing {
  const { isSought, intent } = readCommitted(committed, partition, topicId)
  if (committed === undefined || isSought) return 'moved'
  if (committed.offset > to) return 'done'
  if (committed.offset !== from) return 'moved'
  if (partition === lead || intent === undefined) return 'pending'
  // What it declares of its own is the rest of this block: letters that Kafka refused.
  return intent.isInserted ? 'done' : 'moved'
}

/**
 * Returns the lead whose block a partition has to wait for before a record of it is read: undefined if it need not.
 * Only a lower partition can be one. `committed` holds what was committed for this partition and all lower ones, asked
 * for in that order or at one time.
 */
export function findLead(
  partition: number,
  committed: ReadonlyMap<number, Committed>,
  topicId: string,
): number | undefined {
  for (const [lead, one] of committed) {
    if (lead >= partition) continue
    const range = declaredBy(one, lead, topicId)?.ranges.find((range) => range.partition === partition)
    if (range === undefined) continue
    if (standingOf(range, committed.get(partition), lead, topicId) !== 'done') return lead
  }
  return undefined
}

/** A range of a declared block, with what Kafka and ClickHouse have of its partition. */
export interface RangeFacts extends OffsetRange, Pick<OffsetFacts, 'first' | 'end' | 'lastInserted'> {
  readonly standing: Standing
  /** Of the lead of a block that is alone: rows up to here may be there, because a person moved the offset. */
  readonly seekOverrideUpTo: bigint | undefined
}

/** Rows behind the block: it was finished, and what was committed since is lost. */
const isBeyond = ({ standing, to, lastInserted = -1n, seekOverrideUpTo = -1n }: RangeFacts) =>
  standing === 'pending' && lastInserted > to && lastInserted > seekOverrideUpTo

/** Whether Kafka still has the whole range. */
const isReadable = ({ from, to, first, end }: RangeFacts) => from >= first && to < end

/** What the owner of the lead has to do with a declared block. */
export interface Recovery {
  /** Nothing is to be inserted or sent: only commits are missing. */
  readonly isFinished: boolean
  /** The ranges that are read again, in their order. */
  readonly rebuilt: readonly RangeFacts[]
}

/**
 * Decides what is left to do of a declared block. A range of which Kafka has lost a part is left out whole: the other
 * ranges are inserted under the block's token, which drops them if the block is there.
 */
export function planRecovery(ranges: readonly RangeFacts[]): Recovery {
  const isFinished = ranges.some((range) => range.standing === 'done' || isBeyond(range))
  const rebuilt = ranges.filter((range) => range.standing === 'pending' && isReadable(range))
  return { isFinished, rebuilt: isFinished ? [] : rebuilt }
}

/**
 * Returns the offset that a range's partition is committed at when the block is finished, or undefined if it is not to
 * be moved. `lastInserted` is read after the block was inserted.
 */
export function offsetAfter(range: RangeFacts, { isFinished }: Recovery): bigint | undefined {
  const { standing, from, to, lastInserted = -1n } = range
  if (standing !== 'pending' || isBeyond(range)) return undefined
  // Unreadable, and not among the rows: its start reports what expired, or that the log ends before.
  return isFinished || isReadable(range) || lastInserted >= from ? to + 1n : from
}

/** ClickHouse remembers 10,000 tokens, which a busy group uses in an hour. */
const tokenKnownMs = 600_000

/**
 * Whether ClickHouse may have forgotten a block's token, so that its rows are looked for before it is sent again. Of a
 * block without a time nobody knows.
 */
export const mayBeForgotten = ({ declaredAtMs = 0 }: InsertIntent, nowMs: number): boolean =>
  Math.abs(nowMs - declaredAtMs) > tokenKnownMs
