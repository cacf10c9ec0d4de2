import type { Limit, PeriodBoundaries } from '../limits/limit.ts'

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

/** An NTP correction is smaller; a larger step back is a clock that was set. Also in lua/lib/clock.lua. */
export const stepBackMsMax = 2_000

/** One algorithm as functions of values; the twin of one file in lua/algorithms, and what `local` decides with. */
export interface AlgorithmModel<State> {
  /** Plans one request of this cost on one limit at this time; changes nothing. */
  plan(state: State | undefined, limit: ModelArguments, cost: number, nowUs: number): Plan<State>
  /**
   * The state without `cost` units charged at `atUs`; undefined if none of them counts any more. With `givesBackLatest`
   * 0 is whenever they were charged; any other is asked for those of now then.
   */
  refund(state: State | undefined, limit: ModelArguments, refund: Refund, nowUs: number): State | undefined
  /** The state with `cost` units more for a charge of `atUs`, whether they fit or not; undefined if nothing changes. */
  raise(state: State | undefined, limit: ModelArguments, raise: Refund, nowUs: number): State | undefined
  readonly givesBackLatest?: true
}

/** What an algorithm sees of a limit. */
export interface ModelArguments extends Pick<Limit, 'size' | 'capacity' | 'span'> {
  /** Of a limit with a calendar period. */
  readonly boundaries: PeriodBoundaries | undefined
  /** For how long the units of the request are only held; undefined where they are used. */
  readonly holdMs?: number | undefined
}

/** The window of an algorithm that has no calendar periods. */
export function windowMsOf({ span }: ModelArguments): number {
  if (span.kind !== 'window') throw new Error('a limit that slides or flows back came with a calendar period')
  return span.ms
}

/** A charge, or a part of one, that is taken back or added to. */
export interface Refund {
  readonly cost: number
  /** Redis's clock when the cost was charged, in microseconds. */
  readonly atUs: number
}
