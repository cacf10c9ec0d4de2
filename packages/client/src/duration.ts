/** Milliseconds, or a text as in Weir's policy: `500ms`, `5s`, `15m`, `24h`, `7d`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const unitsMs: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/** A duration in milliseconds; a TypeError for what is none. */
export function durationMs(duration: Duration): number {
  const [, digits, unit = ''] = /^(\d+)(ms|s|m|h|d)$/.exec(String(duration)) ?? []
  const ms = typeof duration === 'number' ? duration : Number(digits) * (unitsMs.get(unit) ?? Number.NaN)
  if (!Number.isFinite(ms) || ms < 0) throw new TypeError(`${duration} is no duration; write 1500 (ms) or "1500ms"`)
  return ms
}

/** As Weir reads it: whole milliseconds, so that it never waits for longer than it was told. */
export const durationText = (duration: Duration): string => `${Math.floor(durationMs(duration))}ms`

/** Longer ones a timer of Node takes for no time at all. */
const timerMsMax = 2 ** 31 - 1

/** A time that a timer can keep, in milliseconds; a TypeError, which names it, for what is none. */
export function timerMs(ms: number, name: string): number {
  if (typeof ms === 'number' && ms > 0 && ms <= timerMsMax) return ms
  throw new TypeError(`${name} is ${ms}; it must be a number of milliseconds above 0, ${timerMsMax} at most`)
}

/** The same, or the longest that can be kept. */
export const boundedMs = (ms: number): number => Math.min(ms, timerMsMax)
