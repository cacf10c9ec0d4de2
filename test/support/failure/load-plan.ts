/** What the load program is started with, as JSON. */
export interface LoadPlan {
  readonly ledgerFile: string
  readonly perSecond: number
  readonly connections: readonly PlannedConnection[]
}

/**
 * In a request the place of the id of its connection's last answer, if that admitted: as long as one. Such a request
 * ends what that one began. It is no decision of its own, so its answer is in no ledger.
 */
export const lastIdPlace = '_'.repeat(36)

/** One connection: it sends its requests one after another, each so often before it goes on to the next. */
export interface PlannedConnection {
  readonly port: number
  /** Whole HTTP requests. */
  readonly requests: readonly string[]
  readonly timesEach: number
}

/** What the load program says of itself, a line of JSON about ten times a second. */
export interface LoadProgress {
  /** Answers that carry a decision's id. */
  readonly answered: number
  /** Of these, by Redis. */
  readonly decided: number
  /** Requests that were sent and never answered: their decisions may be recorded or not. */
  readonly cutOff: number
  /** Answers without a decision: faults before one was made. By status. */
  readonly undecided: Readonly<Record<string, number>>
  /** Answers of a decision that has no id, because it could not be recorded. */
  readonly unrecorded: number
  /** Since it began. */
  readonly elapsedMs: number
  /** When the last answer came that Redis decided, since it began. */
  readonly lastDecidedMs: number
  /** The newest decision that is recorded, as a UUID; empty before the first. */
  readonly lastId: string
}
