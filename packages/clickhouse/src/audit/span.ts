/** A span of time, in milliseconds since the epoch: `fromMs` is in it, `toMs` is not. */
export interface Span {
  readonly fromMs: number
  readonly toMs: number
}

const at = (ms: number) => `fromUnixTimestamp64Milli(${Math.floor(ms)}, 'UTC')`

/** The condition that a row's `ts` lies in the span. */
export const withinSpan = ({ fromMs, toMs }: Span): string => `ts >= ${at(fromMs)} AND ts < ${at(toMs)}`
