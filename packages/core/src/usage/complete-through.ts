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

export interface SilentJournal {
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

/** Watermarks come every second. A journal that misses sixty is cut off or dead; another process sends its rest. */
const silentMs = 60_000

interface Journal {
  readonly marks: ReadonlyMap<number, JournalWatermark>
  readonly firstMs: number
  readonly lastMs: number
  /** Its last watermark came in some partition; where it has not come, its last records are not read yet. */
  readonly isEnding: boolean
}

function byJournal(marks: readonly JournalWatermark[]): Map<string, Journal> {
  const journals = new Map<string, Journal>()
  for (const mark of marks) {
    const known = journals.get(mark.journal)
    journals.set(mark.journal, {
      marks: new Map([...(known?.marks ?? []), [mark.partition, mark]]),
      firstMs: Math.min(mark.firstMarkMs, known?.firstMs ?? mark.firstMarkMs),
      lastMs: Math.max(mark.markMs, known?.lastMs ?? mark.markMs),
      isEnding: mark.isEnd || known?.isEnding === true,
    })
  }
  return journals
}

/** Until when all of a journal has been read from a partition; undefined when nothing is outstanding there. */
function readThrough(journal: Journal, { partition, firstMarkMs }: WatermarkedPartition): number | undefined {
  const mark = journal.marks.get(partition)
  if (mark !== undefined) return mark.isEnd ? undefined : mark.markMs
  // The partition is younger than the journal's end.
  if (journal.isEnding && firstMarkMs > journal.lastMs) return undefined
  // Nothing of it was read here yet; before both of them began there was nothing.
  return Math.max(journal.firstMs, firstMarkMs)
}

/**
 * The time before which nothing is outstanding: the least mark of the journals that have not ended, over all
 * partitions. `marks` may leave out journals that have ended in every partition. Whether a journal is silent goes by
 * the newest mark and not by a clock: where nothing is read, nobody is silent, and the time stands still.
 */
export function completeThrough(
  partitions: readonly WatermarkedPartition[],
  marks: readonly JournalWatermark[],
): Completeness {
  const newestMs = Math.max(...partitions.map(({ lastMarkMs }) => lastMarkMs))
  let leastMs = newestMs
  const silent: SilentJournal[] = []
  for (const [name, journal] of byJournal(marks)) {
    if (!journal.isEnding && newestMs - journal.lastMs > silentMs) {
      silent.push({ journal: name, sinceMs: journal.lastMs })
      continue
    }
    for (const partition of partitions) leastMs = Math.min(leastMs, readThrough(journal, partition) ?? leastMs)
  }
  return { completeThroughMs: Number.isFinite(leastMs) ? leastMs : undefined, silent }
}
