import { isCount, isFields, isText, parseJson } from './fields.ts'

/** `fast`: records pass through as they are. `slow`, after ClickHouse refused the block: each is parsed and encoded. */
export type Encoder = 'fast' | 'slow'

/** Records of one partition, by offset. */
export interface OffsetRange {
  readonly partition: number
  readonly from: bigint
  /** The last offset, included. */
  readonly to: bigint
}

/** The write intent: the block that comes next. An owner that finds it inserts exactly these records, the same way. */
export interface InsertIntent {
  /** In ascending order of their partitions, each of which is named once. The first one's metadata has the intent. */
  readonly ranges: readonly OffsetRange[]
  readonly encoder: Encoder
  /** By the clock of the process that declared it, in milliseconds since the epoch; undefined in version 1. */
  readonly declaredAtMs: number | undefined
  /** The rows are in ClickHouse; what comes after them is not done. */
  readonly isInserted: boolean
  /** The shard that the block is inserted on, whatever others there are since; undefined for a server by itself. */
  readonly shard?: string | undefined
}

/** The metadata of a committed offset. */
export interface CommitMetadata {
  /** The topic incarnation that the offset belongs to; undefined in metadata of older versions and of people. */
  readonly topicId: string | undefined
  readonly intent: InsertIntent | undefined
  /** A person moved the offset, and no process has read from there yet. */
  readonly isSought: boolean
  /** A person moved the offset: rows up to here may already be there. Kept until all of these offsets are passed. */
  readonly seekOverrideUpTo: bigint | undefined
}

/** An offset beyond all others. */
const endless = 2n ** 62n

/** The metadata of an offset that was committed with none, or by another program. */
export const noCommitMetadata: CommitMetadata = {
  topicId: undefined,
  intent: undefined,
  isSought: false,
  seekOverrideUpTo: undefined,
}

/** Returns ranges as `partition:from+length` with digits of base 36, separated by commas: at most 23 bytes a range. */
export const encodeRanges = (ranges: readonly OffsetRange[]): string =>
  ranges
    .map(({ partition, from, to }) => `${partition.toString(36)}:${from.toString(36)}+${(to - from + 1n).toString(36)}`)
    .join()

function parseRange(text: string): OffsetRange | undefined {
  const [, partition = '', from = '', length = ''] =
    /^([0-9a-z]{1,6}):([0-9a-z]{1,10})\+([0-9a-z]{1,6})$/.exec(text) ?? []
  const first = BigInt(Number.parseInt(from || '0', 36))
  const count = Number.parseInt(length || '0', 36)
  if (count === 0) return undefined
  return { partition: Number.parseInt(partition, 36), from: first, to: first + BigInt(count) - 1n }
}

function parseRanges(text: string): OffsetRange[] {
  const ranges = text.split(',').map(parseRange)
  const isOrdered = ranges.every((one, at) => one && one.partition > (ranges[at - 1]?.partition ?? -1))
  return isOrdered ? ranges.filter((one) => one !== undefined) : []
}

/** Returns the text that is committed with an offset. */
export function encodeCommitMetadata({ topicId, intent, isSought, seekOverrideUpTo }: CommitMetadata): string {
  return JSON.stringify({
    v: 2,
    topic: topicId,
    // Not by the names of version 1, which would take the first range for the whole block.
    ...(intent === undefined ? {} : { block: encodeRanges(intent.ranges), at: intent.declaredAtMs }),
    ...(intent?.encoder === 'slow' ? { encoder: 'slow' } : {}),
    ...(intent?.isInserted === true ? { inserted: true } : {}),
    ...(intent?.shard === undefined ? {} : { shard: intent.shard }),
    ...(isSought ? { sought: true } : {}),
    ...(seekOverrideUpTo === undefined || isSought ? {} : { sought_up_to: String(seekOverrideUpTo) }),
  })
}

const offsetOf = (value: unknown) => (isText(value) && /^\d{1,18}$/.test(value) ? BigInt(value) : undefined)

/** A block of version 1 is a range of the partition that it is committed for. */
function rangesOf({ block, from, to }: Readonly<Record<string, unknown>>, partition: number): OffsetRange[] {
  if (isText(block)) return parseRanges(block)
  const [first, last] = [offsetOf(from), offsetOf(to)]
  return first === undefined || last === undefined || last < first ? [] : [{ partition, from: first, to: last }]
}

/** Reads what was committed with a partition's offset. Never throws: any other text is `noCommitMetadata`. */
export function parseCommitMetadata(text: string, partition: number): CommitMetadata {
  const parsed = parseJson(text)
  const found = isFields(parsed) ? parsed : {}
  const ranges = rangesOf(found, partition)
  const isSought = found.sought === true
  const intent: InsertIntent = {
    ranges,
    encoder: found.encoder === 'slow' ? 'slow' : 'fast',
    declaredAtMs: isCount(found.at) ? found.at : undefined,
    isInserted: found.inserted === true,
    shard: isText(found.shard) ? found.shard : undefined,
  }
  return {
    topicId: isText(found.topic) ? found.topic : undefined,
    // Only the first partition of a block has its intent.
    intent: ranges[0]?.partition === partition ? intent : undefined,
    isSought,
    seekOverrideUpTo: isSought ? endless : offsetOf(found.sought_up_to),
  }
}
