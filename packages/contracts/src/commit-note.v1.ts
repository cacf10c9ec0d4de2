/** `fast`: records pass through as they are. `slow`: every record is read and written anew, after ClickHouse refused the block. */
export type Encoder = 'fast' | 'slow'

/** The block that is inserted next. Whoever finds it inserts exactly these records again, in the same way. */
export interface Declared {
  readonly from: bigint
  /** The last offset, included. */
  readonly to: bigint
  readonly encoder: Encoder
}

/** What stands in the metadata of a committed offset. */
export interface CommitNote {
  /** The life of the topic that the offset belongs to; undefined in notes of older versions and of people. */
  readonly topicId: string | undefined
  readonly declared: Declared | undefined
  /** A person has put the offset here, rows behind it or not. Kept until all rows up to `to` were passed. */
  readonly soughtUpTo: bigint | undefined
}

/** What `weir metering seek` writes: the offset is meant, whatever ClickHouse has. */
export const soughtNote = '{"v":1,"sought":true}'
/** Beyond every offset. */
const endless = 2n ** 62n

export function writeNote(note: CommitNote): string {
  const { topicId, declared, soughtUpTo } = note
  return JSON.stringify({
    v: 1,
    topic: topicId,
    ...(declared === undefined
      ? {}
      : { from: String(declared.from), to: String(declared.to), encoder: declared.encoder }),
    ...(soughtUpTo === undefined ? {} : { sought_up_to: String(soughtUpTo) }),
  })
}

const noNote: CommitNote = { topicId: undefined, declared: undefined, soughtUpTo: undefined }

const offsetOf = (value: unknown) => (typeof value === 'string' && /^\d{1,18}$/.test(value) ? BigInt(value) : undefined)

/** Whatever else the metadata is, it declares nothing. */
export function readNote(metadata: string): CommitNote {
  if (metadata === '') return noNote
  let parsed: unknown
  try {
    parsed = JSON.parse(metadata)
  } catch {
    return noNote
  }
  const note: Readonly<Record<string, unknown>> = typeof parsed === 'object' && parsed !== null ? { ...parsed } : {}
  const from = offsetOf(note.from)
  const to = offsetOf(note.to)
  const encoder = note.encoder === 'slow' ? 'slow' : 'fast'
  return {
    topicId: typeof note.topic === 'string' ? note.topic : undefined,
    declared: from === undefined || to === undefined || to < from ? undefined : { from, to, encoder },
    soughtUpTo: note.sought === true ? endless : offsetOf(note.sought_up_to),
  }
}
