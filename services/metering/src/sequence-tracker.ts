/** Sequence numbers of a journal that never came, although later ones did: from the first to the last. */
export interface MissingRange {
  readonly journal: string
  readonly fromSeq: number
  readonly toSeq: number
  /** How many of the range are missing: dead letters may account for the others. */
  readonly count: number
}

/** How far one journal has been read in a partition. */
export interface JournalCursor {
  readonly journal: string
  /** The bytes in front of the number in each of its records. */
  readonly tail: Buffer
  /** Highest sequence number so far; -1 for none. */
  seq: number
  /** Offset of the record with that number; -1 if this process has not read it. */
  position: number
}

const tailOf = (journal: string) => `,"journal":"${journal}","seq":`
/** Length of a tail in bytes. */
export const tailBytes = tailOf('00000000-0000-0000-0000-000000000000').length
const tailForm = /^,"journal":"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})","seq":$/
/** Where the UUID begins in the tail. */
const idAt = 12

/** Dead letters without a number that are remembered: one may account for a missing number of any journal. */
const unnumberedMax = 1_000

function equals(bytes: Buffer, at: number, tail: Buffer): boolean {
  for (let i = tailBytes - 1; i >= 0; i -= 1) if (bytes[at + i] !== tail[i]) return false
  return true
}

/**
 * Tracks the highest sequence number of each journal in one partition. A number that is not above it is a duplicate;
 * one that skips numbers proves a loss. What a block changes is provisional: `commit` or `rollBack` ends each block.
 */
export class SequenceTracker {
  readonly #journals = new Map<string, JournalCursor>()
  /** By four digits of the id, for finding a journal by bytes. */
  readonly #byDigits = new Map<number, JournalCursor[]>()
  readonly #changed = new Map<JournalCursor, { readonly seq: number; readonly position: number }>()
  #unnumbered: number[] = []
  #unnumberedBefore: number[] = []
  #last: JournalCursor | undefined

  /** `highest`: the highest number that ClickHouse has of every journal. */
  constructor(highest: ReadonlyMap<string, number>) {
    for (const [journal, seq] of highest) this.find(journal).seq = seq
  }

  find(journal: string): JournalCursor {
    const known = this.#journals.get(journal)
    if (known !== undefined) return known
    const state = { journal, tail: Buffer.from(tailOf(journal), 'latin1'), seq: -1, position: -1 }
    this.#journals.set(journal, state)
    const digits = state.tail.readUInt32LE(idAt)
    const same = this.#byDigits.get(digits)
    if (same === undefined) this.#byDigits.set(digits, [state])
    else same.push(state)
    return state
  }

  /** Returns the journal whose tail is at `at`, if one is. Decodes no text unless the journal is new. */
  findByTail(bytes: Buffer, at: number): JournalCursor | undefined {
    if (this.#last !== undefined && equals(bytes, at, this.#last.tail)) return this.#last
    const known = this.#byDigits.get(bytes.readUInt32LE(at + idAt))?.find(({ tail }) => equals(bytes, at, tail))
    if (known !== undefined) {
      this.#last = known
      return known
    }
    const journal = tailForm.exec(bytes.toString('latin1', at, at + tailBytes))?.[1]
    return journal === undefined ? undefined : this.find(journal)
  }

  /** Accepts a number; returns false for a duplicate. What it proves lost is pushed to `missing`. */
  accept(cursor: JournalCursor, seq: number, position: number, missing: MissingRange[]): boolean {
    if (seq <= cursor.seq) return false
    if (!this.#changed.has(cursor)) this.#changed.set(cursor, { seq: cursor.seq, position: cursor.position })
    if (seq > cursor.seq + 1) {
      const skipped = seq - cursor.seq - 1
      const count = skipped - this.#coverWithUnnumbered(skipped, cursor.position, position)
      if (count > 0) missing.push({ journal: cursor.journal, fromSeq: cursor.seq + 1, toSeq: seq - 1, count })
    }
    cursor.seq = seq
    cursor.position = position
    return true
  }

  /**
   * Accepts the number of an unreadable record if it is the very next one. Any other could be a forgery that makes
   * duplicates of all later records. A record without a number may account for any number that is missing around it.
   */
  acceptUnreadable(number: { readonly journal: string; readonly seq: number } | undefined, position: number): boolean {
    const state = number === undefined ? undefined : this.#journals.get(number.journal)
    if (state !== undefined && number?.seq === state.seq + 1) return this.accept(state, number.seq, position, [])
    if (this.#unnumbered.length < unnumberedMax) this.#unnumbered = [...this.#unnumbered, position]
    return false
  }

  #coverWithUnnumbered(missing: number, after: number, before: number): number {
    const between = (number: number) => number > after && number < before
    const used = this.#unnumbered.filter(between).slice(0, missing)
    if (used.length > 0) this.#unnumbered = this.#unnumbered.filter((number) => !used.includes(number))
    return used.length
  }

  /** Keeps what the block changed. */
  commit(): void {
    this.#changed.clear()
    this.#unnumberedBefore = this.#unnumbered
  }

  /** Restores the state before the block. */
  rollBack(): void {
    for (const [state, before] of this.#changed) Object.assign(state, before)
    this.#changed.clear()
    this.#unnumbered = this.#unnumberedBefore
  }
}
