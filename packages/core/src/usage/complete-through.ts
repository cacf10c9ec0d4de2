/** A journal's last word in one partition. */
export interface JournalWatermark {
  readonly journal: string
  readonly partition: number
  /** All of the journal before it in time has been inserted from this partition. */
  readonly markMs: number
  readonly firstMarkMs: number
  /** Nothing of the journal comes after it in this partition. */
  readonly isEnd: boolean
}

/** The first and the last watermark of one partition, of any journal. */
export interface WatermarkedPartition {
  readonly partition: number
  readonly firstMarkMs: number
  readonly lastMarkMs: number
}

interface SilentJournal {
  readonly journal: string
  /** Its last mark. */
  readonly sinceMs: number
}

/** How far sums are complete. */
export interface Completeness {
  /** All decisions before it are counted, but for those of silent journals. Undefined before the first mark. */
  readonly completeThroughMs: number | undefined
  /** Said nothing for a minute while others did, nor that they are done: what they still hold comes later. */
  readonly silent: readonly SilentJournal[]
}

/** Watermarks come every five seconds or more often. A journal that misses twelve is cut off or dead. */
const silentMs = 60_000

/** Until when all of a journal has been read from a partition; undefined when nothing is outstanding there. */
function readThrough(marks: readonly JournalWatermark[], at: WatermarkedPartition): number | undefined {
  const mark = marks.find(({ partition }) => partition === at.partition)
  if (mark !== undefined) return mark.isEnd ? undefined : mark.markMs
  // The partition is younger than the journal's end.
  if (isEnding(marks) && at.firstMarkMs > lastMsOf(marks)) return undefined
  // Nothing of it was read here yet; before both of them began there was nothing.
  return Math.max(Math.min(...marks.map(({ firstMarkMs }) => firstMarkMs)), at.firstMarkMs)
}

const lastMsOf = (marks: readonly JournalWatermark[]) => Math.max(...marks.map(({ markMs }) => markMs))
/** The last watermark came in some partition; where it has not come, the journal's last records are not read yet. */
const isEnding = (marks: readonly JournalWatermark[]) => marks.some(({ isEnd }) => isEnd)

/**
 * The time before which nothing is outstanding: the least mark of the journals that have not ended, over all
 * partitions. `marks` may leave out journals that have ended in every partition. Whether a journal is silent goes by
 * the newest mark and not by a clock: where nothing is read, no journal is silent, and the time stands still.
 */
export function completeThrough(
  partitions: readonly WatermarkedPartition[],
  marks: readonly JournalWatermark[],
): Completeness {
  const newestMs = Math.max(...partitions.map(({ lastMarkMs }) => lastMarkMs))
  let leastMs = newestMs
  const silent: SilentJournal[] = []
  for (const [journal, own] of Map.groupBy(marks, (mark) => mark.journal)) {
    const sinceMs = lastMsOf(own)
    if (!isEnding(own) && newestMs - sinceMs > silentMs) {
      silent.push({ journal, sinceMs })
      continue
    }
    for (const partition of partitions) leastMs = Math.min(leastMs, readThrough(own, partition) ?? leastMs)
  }
  return { completeThroughMs: Number.isFinite(leastMs) ? leastMs : undefined, silent }
}
