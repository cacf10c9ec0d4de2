const [secondMs, minuteMs, hourMs] = [1_000, 60_000, 3_600_000]

/** Pauses between attempts, those of Standard Webhooks' example: ten attempts in 75 hours and 35 minutes. */
const pausesMs = [
  ...[5 * secondMs, 5 * minuteMs, 30 * minuteMs],
  ...[2 * hourMs, 5 * hourMs, 10 * hourMs, 14 * hourMs, 20 * hourMs, 24 * hourMs],
]
/** Longer by at most this part, so that what failed together is not tried together. */
const jitter = 0.2
/** An endpoint may ask for no longer pause than the schedule's longest. */
const retryAfterMsMax = 24 * hourMs

/** From its first attempt on an alert is tried for so long, also where its endpoint's circuit put attempts off. */
export const giveUpAfterMs = 4 * 24 * hourMs

/** When the next attempt is due after so many failed ones; undefined when there is none left. `random` is of [0, 1). */
export function nextTryMs(
  { attempts, nowMs, retryAfterMs = 0 }: { attempts: number; nowMs: number; retryAfterMs?: number | undefined },
  random: () => number,
): number | undefined {
  const pauseMs = pausesMs[attempts - 1]
  if (pauseMs === undefined) return undefined
  const ownMs = Math.round(pauseMs * (1 + jitter * random()))
  return nowMs + Math.max(ownMs, Math.min(retryAfterMs, retryAfterMsMax))
}

/** `Retry-After` in milliseconds from now: seconds, or a date of HTTP. Undefined if it says neither. */
export function parseRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,9}$/.test(text)) return Number(text) * secondMs
  const at = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs)
}
