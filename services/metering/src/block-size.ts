import type { Declared } from '@weir/contracts/commit-note.v1.ts'
import type { BlockRecord } from './ports.ts'

/** At either of them a block is closed. */
export interface BlockSize {
  readonly records: number
  readonly bytes: number
}

/**
 * ClickHouse takes a large block for half the work a row of a small one, and has half a session for it. So much for each second of the
 * session it takes in a twentieth of the session on one core: a dozen at once, of several processes, are done in time.
 */
const recordsPerSecond = 750
const bytesPerSecond = 350_000
/** Of a longer session no more than of this: larger blocks gain little, and a process holds three, as fetched and as lines. */
const secondsMax = 30

/** `sessionMs`: of the consumer group. */
export function blockSizeFor(sessionMs: number): BlockSize {
  const seconds = Math.min(secondsMax, sessionMs / 1_000)
  return { records: Math.floor(seconds * recordsPerSecond), bytes: Math.floor(seconds * bytesPerSecond) }
}

/** The place behind the last record of the block that begins at `start`; a block has at least one. */
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

export const positionAt = (records: readonly BlockRecord[], at: number) => BigInt(records.at(at)?.position ?? 0)

/** The span of the block that begins at `start`; undefined behind the last record. */
export function nextBlock(records: readonly BlockRecord[], start: number, max: BlockSize): Declared | undefined {
  if (start >= records.length) return undefined
  const to = positionAt(records, endOfBlock(records, start, max) - 1)
  return { from: positionAt(records, start), to, encoder: 'fast' }
}
