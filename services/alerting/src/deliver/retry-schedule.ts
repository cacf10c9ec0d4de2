const [secondMs, minuteMs, hourMs] = [1_000, 60_000, 3_600_000]

/** Pauses between attempts, those of Standard Webhooks' example: ten attempts in 75 hours and 35 minutes. */
const pausesMs = [
  5 * secondMs,
  5 * minuteMs,
  30 * minuteMs,
  2 * hourMs,
  5 * hourMs,
  10 * hourMs,
  14 * hourMs,
  20 * hourMs,
  24 * hourMs,
]
/** Each pause is longer by up to this share, so that attempts that failed together are not repeated together. */
const jitter = 0.2
/** The longest pause that an endpoint may ask for: the longest of the schedule. */
const retryAfterMsMax = 24 * hourMs

/**
 * Returns when the attempt after `attempts` failed ones is due; undefined if none is left. `random` returns values of
 * [0, 1).
 */
export function nextTryMs(
  { attempts, nowMs, retryAfterMs = 0 }: { attempts: number; nowMs: number; retryAfterMs?: number | undefined },
  random: () => number,
): number | undefined {
  const pauseMs = pausesMs[attempts - 1]
  if (pauseMs === undefined) return undefined
  const ownMs = Math.round(pauseMs * (1 + jitter * random()))
  return nowMs + Math.max(ownMs, Math.min(retryAfterMs, retryAfterMsMax))
}

/** Reads `Retry-After`, in seconds or as an HTTP date, as milliseconds from now. Undefined if it is neither. */
export function parseRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,9}$/.test(text)) return Number(text) * secondMs
  const at = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs)
}
