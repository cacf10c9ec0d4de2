import type { InsertIntent } from '@weir/contracts/commit-metadata.v1.ts'
import type { BlockRecord } from './ports.ts'

/** A block is closed when it reaches either. */
export interface BlockSize {
  readonly records: number
  readonly bytes: number
}

/**
 * A row of a large block costs ClickHouse half as much as one of a small block, and an insert may take half a session.
 * A block of this size for each second of the session takes a twentieth of the session on one core: a dozen of them, of
 * several processes, are inserted in time.
 */
const recordsPerSecond = 750
const bytesPerSecond = 350_000
/** Longer sessions get no larger blocks: they would gain little, and a process holds three, as fetched and as lines. */
const secondsMax = 30

/** Returns the largest block for a consumer group with this session. */
export function blockSizeFor(sessionMs: number): BlockSize {
  const seconds = Math.min(secondsMax, sessionMs / 1_000)
  return { records: Math.floor(seconds * recordsPerSecond), bytes: Math.floor(seconds * bytesPerSecond) }
}

/** Records that are inserted as one block, and the write intent that names them. */
export interface BlockCut {
  readonly records: readonly BlockRecord[]
  readonly intent: InsertIntent
}

/** Cuts records of one partition, in the order of their offsets, into blocks of at least one record each. */
export function cutBlocks(records: readonly BlockRecord[], max: BlockSize): BlockCut[] {
  const blocks: BlockCut[] = []
  let [start, at, bytes] = [0, 0, 0]
  const close = (end: number) => {
    const cut = records.slice(start, end)
    const [from, to] = [cut[0]?.position ?? 0, cut.at(-1)?.position ?? 0]
    if (cut.length > 0) blocks.push({ records: cut, intent: { from: BigInt(from), to: BigInt(to), encoder: 'fast' } })
    start = end
    bytes = 0
  }
  for (const { valueStart, valueEnd } of records) {
    const length = valueEnd - valueStart
    if (at - start === max.records || (at > start && bytes + length > max.bytes)) close(at)
    bytes += length
    at += 1
  }
  close(at)
  return blocks
}
