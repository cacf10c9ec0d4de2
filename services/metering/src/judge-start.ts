import { type CommitNote, type Declared, readNote } from '@weir/contracts/commit-note.v1.ts'

/** What Kafka and ClickHouse say of a partition. */
export interface Standing {
  readonly committed: { readonly offset: bigint; readonly metadata: string } | undefined
  /** Kafka's first offset, and the one after the last. */
  readonly first: bigint
  readonly end: bigint
  readonly topicId: string
  /** The last offset that ClickHouse has, in this life of the topic. */
  readonly lastInserted: bigint | undefined
}

/** Offsets that Kafka deleted before they were read: both included. */
export interface Expired {
  readonly from: bigint
  readonly to: bigint
}

/** Where to begin; or why not to. */
export type Verdict =
  | {
      readonly kind: 'begin'
      /** After the recovery of what was declared, if anything was. */
      readonly offset: bigint
      readonly recover: Declared | undefined
      readonly expired: Expired | undefined
      /** Rows up to here may be there without a commit: a person said so. */
      readonly soughtUpTo: bigint | undefined
    }
  | { readonly kind: 'stop'; readonly reason: string }

const mend = (to: string) => `look, then stop metering and run weir metering seek --partition P --to ${to}`

function stopAhead(offset: bigint, { end }: Standing): Verdict {
  return {
    kind: 'stop',
    reason: `AHEAD_OF_THE_LOG: committed is ${offset}, and Kafka's log ends at ${end}: it lost records that were metered; ${mend('OFFSET')}`,
  }
}

function stopWithoutCommit(committed: string, { lastInserted }: Standing): Verdict {
  return {
    kind: 'stop',
    reason: `ROWS_WITHOUT_COMMIT: ClickHouse has rows up to offset ${lastInserted}, and ${committed}: reading on would have to tell old rows from new; ${mend('clickhouse')}`,
  }
}

/** Begins at an offset, or where the log does if that is later: what lies between is gone. */
function beginAt(offset: bigint, standing: Standing, note: CommitNote): Verdict {
  const { first } = standing
  const expired = offset < first ? { from: offset, to: first - 1n } : undefined
  const isThrough = (note.soughtUpTo ?? -1n) < (offset < first ? first : offset)
  return {
    kind: 'begin',
    offset: offset < first ? first : offset,
    recover: undefined,
    expired,
    soughtUpTo: isThrough ? undefined : note.soughtUpTo,
  }
}

function judgeDeclared(declared: Declared, standing: Standing, note: CommitNote): Verdict {
  const { first, end, lastInserted = -1n } = standing
  if (declared.to >= end) return stopAhead(declared.to + 1n, standing)
  const known = note.soughtUpTo ?? -1n
  if (lastInserted > declared.to && lastInserted > known) {
    return stopWithoutCommit(`the commit declares ${declared.from} to ${declared.to}`, standing)
  }
  if (declared.from < first) {
    // Some of the block is gone from Kafka, so it cannot be built again; if its rows are there, nothing is missing.
    return beginAt(lastInserted >= declared.from ? declared.to + 1n : declared.from, standing, note)
  }
  return { kind: 'begin', offset: declared.to + 1n, recover: declared, expired: undefined, soughtUpTo: note.soughtUpTo }
}

/**
 * Compares what was committed, what the log has and what ClickHouse has. ClickHouse behind the commit is read again; what would lose
 * or repeat something stops.
 */
export function judgeStart(standing: Standing): Verdict {
  const { committed, first, end, topicId, lastInserted } = standing
  const none = { topicId: undefined, declared: undefined, soughtUpTo: undefined }
  const note = committed === undefined ? none : readNote(committed.metadata)
  const isOfThisLife = note.topicId === undefined || note.topicId === topicId
  if (committed === undefined || !isOfThisLife) {
    if (lastInserted === undefined) return beginAt(first, standing, none)
    return stopWithoutCommit('nothing is committed', standing)
  }
  const { offset } = committed
  if (offset > end) return stopAhead(offset, standing)
  if (note.declared !== undefined && note.declared.from === offset) return judgeDeclared(note.declared, standing, note)
  if (lastInserted !== undefined && lastInserted >= offset) {
    if (note.soughtUpTo === undefined || note.soughtUpTo < lastInserted) {
      return stopWithoutCommit(`${offset} is committed`, standing)
    }
    return beginAt(offset, standing, { ...note, soughtUpTo: lastInserted })
  }
  if (note.soughtUpTo !== undefined) return beginAt(offset, standing, none)
  if (lastInserted !== undefined) return beginAt(lastInserted + 1n, standing, none)
  // An empty ClickHouse gets all that Kafka has.
  return offset > first ? beginAt(first, standing, none) : beginAt(offset, standing, none)
}
