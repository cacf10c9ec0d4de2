/** A span of time, in milliseconds since the epoch: `fromMs` is in it, `toMs` is not. */
export interface Span {
  readonly fromMs: number
  readonly toMs: number
  /** Limits the span to these subjects, where a table has any. */
  readonly subjects?: readonly string[]
}

const at = (ms: number) => `fromUnixTimestamp64Milli(${Math.floor(ms)}, 'UTC')`

/** Returns a text as ClickHouse reads it between quotes. */
export const quoted = (text: string): string => `'${text.replaceAll(/[\\']/g, '\\$&')}'`

/** Returns the condition that a row's `ts`, and its `subject` if the span names any, are in the span. */
export const withinSpan = ({ fromMs, toMs, subjects }: Span): string => {
  const time = `ts >= ${at(fromMs)} AND ts < ${at(toMs)}`
  return subjects === undefined ? time : `${time} AND subject IN (${subjects.map(quoted).join(', ')})`
}
