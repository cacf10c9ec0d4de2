import type { InsertIntent } from '@weir/contracts/commit-metadata.v1.ts'
import type { BlockRecord } from './ports.ts'

/** A block is closed when it reaches either. */
export interface BlockSize {
  readonly records: number
  readonly bytes: number
}

/**
 * Of a large block a row costs ClickHouse half as much as of a small one, and an insert may take half a session. A
 * block of this size for each second of the session takes a twentieth of the session on one core: a dozen of them, of
 * several processes, are inserted in time.
 */
const recordsPerSecond = 750
const bytesPerSecond = 350_000
/** Longer sessions get no larger blocks: they would gain little, and a process holds three, as fetched and as lines. */
const secondsMax = 30

/** `sessionMs`: of the consumer group. */
export function blockSizeFor(sessionMs: number): BlockSize {
  const seconds = Math.min(secondsMax, sessionMs / 1_000)
  return { records: Math.floor(seconds * recordsPerSecond), bytes: Math.floor(seconds * bytesPerSecond) }
}

/** Returns the index behind the last record of the block that begins at `start`; a block has at least one. */
export function endOfBlock(records: readonly BlockRecord[], start: number, max: BlockSize): number {
  let bytes = 0
  let end = start
  while (end < records.length && end - start < max.records) {
    const record = records[end]
    bytes += record === undefined ? 0 : record.valueEnd - record.valueStart
    if (bytes > max.bytes && end > start) break
    end += 1
  }
  return end
}

/** Returns the offset of the record at an index; 0 if there is none. */
export const positionAt = (records: readonly BlockRecord[], at: number) => BigInt(records.at(at)?.position ?? 0)

/** Returns the write intent of the block that begins at `start`; undefined behind the last record. */
export function nextBlock(records: readonly BlockRecord[], start: number, max: BlockSize): InsertIntent | undefined {
  if (start >= records.length) return undefined
  const to = positionAt(records, endOfBlock(records, start, max) - 1)
  return { from: positionAt(records, start), to, encoder: 'fast' }
}
