/** Milliseconds, or a text as in Weir's policy: `500ms`, `5s`, `15m`, `24h`, `7d`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const unitsMs: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/** Returns a duration in milliseconds. Throws a TypeError for any other text or number. */
export function durationMs(duration: Duration): number {
  const [, digits, unit = ''] = /^(\d+)(ms|s|m|h|d)$/.exec(String(duration)) ?? []
  const ms = typeof duration === 'number' ? duration : Number(digits) * (unitsMs.get(unit) ?? Number.NaN)
  if (!Number.isFinite(ms) || ms < 0) throw new TypeError(`${duration} is not a duration; write 1500 (ms) or "1500ms"`)
  return ms
}

/** Returns a duration as Weir reads it: whole milliseconds, rounded down so that Weir never waits longer. */
export const durationText = (duration: Duration): string => `${Math.floor(durationMs(duration))}ms`

/** The longest time of a timer: Node runs a longer one immediately. */
const timerMsMax = 2 ** 31 - 1

/** Returns a time that a timer can keep, in milliseconds. Throws a TypeError that names any other. */
export function timerMs(ms: number, name: string): number {
  if (typeof ms === 'number' && ms > 0 && ms <= timerMsMax) return ms
  throw new TypeError(`${name} is ${ms}; it must be a number of milliseconds above 0, ${timerMsMax} at most`)
}

/** Returns the time, or the longest that a timer can keep. */
export const boundedMs = (ms: number): number => Math.min(ms, timerMsMax)
