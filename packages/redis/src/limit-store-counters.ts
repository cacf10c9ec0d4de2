/** Counts since the start, for metrics; only ever growing. */
export interface LimitStoreCounters {
  readonly calls: number
  readonly decisions: number
  readonly unavailable: number
  /** Replies that came after their requests had been answered without them. */
  readonly lateReplies: number
  /** Charges of such replies that were given back, because their clients had been turned away. */
  readonly lateRefunds: number
  /** Of those, the ones that did not count any more, or that Redis went away again before. */
  readonly lateRefundsLost: number
  /** Limits that started over although their span had not ended: a clock was set back, or a limit shortened. */
  readonly rebased: number
  /** How often a server was found gone. */
  readonly breakerOpened: number
  /** Failed calls by Redis's error code; `NOT_SENT`, `CONNECTION` without an answer, `REPLY` for an unreadable one. */
  readonly scriptErrors: Readonly<Record<string, number>>
}

/** A call that Redis refused. */
export interface RefusedCall {
  readonly message: string
  /** On the monotonic clock. */
  readonly atMs: number
}

/** Codes are Redis's own and few, but what stands before a reply is not ours to bound. */
const codesMax = 64

/** The counts of one store while it counts. */
export class StoreCounts {
  calls = 0
  decisions = 0
  unavailable = 0
  lateReplies = 0
  lateRefunds = 0
  lateRefundsLost = 0
  rebased = 0
  /** The last that Redis refused for a reason of its own, or answered unreadably; a connection's end is none. */
  refused: RefusedCall | undefined
  readonly #scriptErrors: Record<string, number> = {}

  countError(code: string, error: unknown): void {
    const known = code in this.#scriptErrors || Object.keys(this.#scriptErrors).length < codesMax ? code : 'ERR'
    this.#scriptErrors[known] = (this.#scriptErrors[known] ?? 0) + 1
    if (error instanceof Error && code !== 'CONNECTION' && code !== 'NOT_SENT') {
      this.refused = { message: error.message, atMs: performance.now() }
    }
  }

  snapshot(breakerOpened: number): LimitStoreCounters {
    const { calls, decisions, unavailable, lateReplies, lateRefunds, lateRefundsLost, rebased } = this
    const counts = { calls, decisions, unavailable, lateReplies, lateRefunds, lateRefundsLost, rebased }
    return { ...counts, breakerOpened, scriptErrors: { ...this.#scriptErrors } }
  }
}
