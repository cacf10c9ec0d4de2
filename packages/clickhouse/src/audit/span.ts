/** A span of time, in milliseconds since the epoch: `fromMs` is in it, `toMs` is not. */
export interface Span {
  readonly fromMs: number
  readonly toMs: number
  /** Only what these have in it, where a table has subjects. */
  readonly subjects?: readonly string[]
}

const at = (ms: number) => `fromUnixTimestamp64Milli(${Math.floor(ms)}, 'UTC')`

/** As ClickHouse reads a text between quotes. */
export const quoted = (text: string): string => `'${text.replaceAll(/[\\']/g, '\\$&')}'`

/** The condition that a row's `ts`, and its `subject` if the span names any, lie in the span. */
export const withinSpan = ({ fromMs, toMs, subjects }: Span): string => {
  const time = `ts >= ${at(fromMs)} AND ts < ${at(toMs)}`
  return subjects === undefined ? time : `${time} AND subject IN (${subjects.map(quoted).join(', ')})`
}
