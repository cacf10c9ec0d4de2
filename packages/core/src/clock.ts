/** Wall-clock time in milliseconds since the epoch. Time is an argument: tests pass their own. */
export interface Clock {
  nowMs(): number
}

/** The clock of this machine. */
export const systemClock: Clock = { nowMs: () => Date.now() }
