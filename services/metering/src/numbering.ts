/** Numbers of a journal that never came, although later ones did: from the first to the last. */
export interface Lost {
  readonly journal: string
  readonly fromSeq: number
  readonly toSeq: number
  /** Fewer than the range has where dead letters cover a part. */
  readonly count: number
}

/** What a partition has had of one journal. */
export interface JournalState {
  readonly journal: string
  /** The bytes in front of the number in each of its records. */
  readonly tail: Buffer
  /** Highest number so far; -1 for none. */
  seq: number
  /** Of the record with that number; -1 where it was before our time. */
  position: number
}

const tailOf = (journal: string) => `,"journal":"${journal}","seq":`
/** Bytes of such a tail. */
export const tailBytes = tailOf('00000000-0000-0000-0000-000000000000').length
const tailForm = /^,"journal":"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})","seq":$/
/** Where the first digits of the UUID stand in the tail. */
const idAt = 12

/** Dead letters without a number are remembered to this many: one may stand for a missing number of any journal. */
const unnumberedMax = 1_000

function equals(bytes: Buffer, at: number, tail: Buffer): boolean {
  for (let i = tailBytes - 1; i >= 0; i -= 1) if (bytes[at + i] !== tail[i]) return false
  return true
}

/**
 * How far each journal's records of one partition have come. A number that is not above the highest is a duplicate; one that skips
 * some proves a loss. What a block changes counts only when the block is done with: `keep` or `undo` ends each.
 */
export class Numbering {
  readonly #journals = new Map<string, JournalState>()
  /** By four digits of the id, for finding a journal by bytes. */
  readonly #byDigits = new Map<number, JournalState[]>()
  readonly #changed = new Map<JournalState, { readonly seq: number; readonly position: number }>()
  #unnumbered: number[] = []
  #unnumberedBefore: number[] = []
  #last: JournalState | undefined

  /** `highest`: of every journal, what ClickHouse has. */
  constructor(highest: ReadonlyMap<string, number>) {
    for (const [journal, seq] of highest) this.find(journal).seq = seq
  }

  find(journal: string): JournalState {
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

  /** The journal whose tail stands at `at`; undefined where none does. No text is made of it unless it is new. */
  findByTail(bytes: Buffer, at: number): JournalState | undefined {
    if (this.#last !== undefined && equals(bytes, at, this.#last.tail)) return this.#last
    const known = this.#byDigits.get(bytes.readUInt32LE(at + idAt))?.find(({ tail }) => equals(bytes, at, tail))
    if (known !== undefined) {
      this.#last = known
      return known
    }
    const journal = tailForm.exec(bytes.toString('latin1', at, at + tailBytes))?.[1]
    return journal === undefined ? undefined : this.find(journal)
  }

  /** Takes a number: false for a duplicate. What it proves lost is pushed to `lost`. */
  take(state: JournalState, seq: number, position: number, lost: Lost[]): boolean {
    if (seq <= state.seq) return false
    if (!this.#changed.has(state)) this.#changed.set(state, { seq: state.seq, position: state.position })
    if (seq > state.seq + 1) {
      const missing = seq - state.seq - 1
      const count = missing - this.#coverWithUnnumbered(missing, state.position, position)
      if (count > 0) lost.push({ journal: state.journal, fromSeq: state.seq + 1, toSeq: seq - 1, count })
    }
    state.seq = seq
    state.position = position
    return true
  }

  /**
   * Takes what an unreadable record says of its number, where it is the very next: then it is believed. Any other could be a forgery
   * that makes duplicates of all to come. What has no number may stand for any that is missing around it.
   */
  takeUnreadable(number: { readonly journal: string; readonly seq: number } | undefined, position: number): boolean {
    const state = number === undefined ? undefined : this.#journals.get(number.journal)
    if (state !== undefined && number?.seq === state.seq + 1) return this.take(state, number.seq, position, [])
    if (this.#unnumbered.length < unnumberedMax) this.#unnumbered = [...this.#unnumbered, position]
    return false
  }

  #coverWithUnnumbered(missing: number, after: number, before: number): number {
    const between = (place: number) => place > after && place < before
    const used = this.#unnumbered.filter(between).slice(0, missing)
    if (used.length > 0) this.#unnumbered = this.#unnumbered.filter((place) => !used.includes(place))
    return used.length
  }

  keep(): void {
    this.#changed.clear()
    this.#unnumberedBefore = this.#unnumbered
  }

  undo(): void {
    for (const [state, before] of this.#changed) Object.assign(state, before)
    this.#changed.clear()
    this.#unnumbered = this.#unnumberedBefore
  }
}
