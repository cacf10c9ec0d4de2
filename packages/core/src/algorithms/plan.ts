/** What one limit makes of one request, without charging anything: the numbers are those after the decision. */
export interface Plan<State> {
  /** 0 admits; above 0 waiting exactly that long admits; below 0 no waiting ever does. */
  readonly waitMs: number
  readonly used: number
  readonly remaining: number
  readonly resetMs: number
  /** The state to store if every other limit admits too; undefined when nothing is to be stored. */
  readonly next: State | undefined
  /** Units are dropped although their span has not ended: the clock was set back, or the limit shortened. */
  readonly rebased: boolean
}

/** An NTP correction is smaller; a larger step back is a clock that was set. The same number as in lua/lib/clock.lua. */
export const stepBackMsMax = 2_000
