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
