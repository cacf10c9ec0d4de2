import { isFields, parseJson } from './fields.ts'

/** `fast`: records pass through as they are. `slow`, after ClickHouse refused the block: each is parsed and encoded. */
export type Encoder = 'fast' | 'slow'

/** The write intent: the block that comes next. An owner that finds it inserts exactly these records, the same way. */
export interface InsertIntent {
  readonly from: bigint
  /** The last offset, included. */
  readonly to: bigint
  readonly encoder: Encoder
}

/** The metadata of a committed offset. */
export interface CommitMetadata {
  /** The topic incarnation that the offset belongs to; undefined in metadata of older versions and of people. */
  readonly topicId: string | undefined
  readonly intent: InsertIntent | undefined
  /** A person moved the offset: rows up to here may already be there. Kept until all of these offsets are passed. */
  readonly seekOverrideUpTo: bigint | undefined
}

/** The metadata that `weir metering seek` commits: read from this offset, whatever rows ClickHouse has. */
export const seekMetadata = '{"v":1,"sought":true}'
/** An offset beyond all others. */
const endless = 2n ** 62n

/** Returns the text that is committed with an offset. */
export function encodeCommitMetadata({ topicId, intent, seekOverrideUpTo }: CommitMetadata): string {
  return JSON.stringify({
    v: 1,
    topic: topicId,
    ...(intent === undefined ? {} : { from: String(intent.from), to: String(intent.to), encoder: intent.encoder }),
    ...(seekOverrideUpTo === undefined ? {} : { sought_up_to: String(seekOverrideUpTo) }),
  })
}

/** The metadata of an offset that was committed with none, or by another program. */
export const noCommitMetadata: CommitMetadata = { topicId: undefined, intent: undefined, seekOverrideUpTo: undefined }

const offsetOf = (value: unknown) => (typeof value === 'string' && /^\d{1,18}$/.test(value) ? BigInt(value) : undefined)

/** Reads what was committed with an offset. Never throws: any other text is `noCommitMetadata`. */
export function parseCommitMetadata(text: string): CommitMetadata {
  const parsed = parseJson(text)
  const found = isFields(parsed) ? parsed : {}
  const from = offsetOf(found.from)
  const to = offsetOf(found.to)
  const encoder = found.encoder === 'slow' ? 'slow' : 'fast'
  return {
    topicId: typeof found.topic === 'string' ? found.topic : undefined,
    intent: from === undefined || to === undefined || to < from ? undefined : { from, to, encoder },
    seekOverrideUpTo: found.sought === true ? endless : offsetOf(found.sought_up_to),
  }
}
