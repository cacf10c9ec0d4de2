/**
 * Milliseconds from `nowMs` that a Retry-After header asks for: seconds, or a date of HTTP in any of its three forms,
 * which are all GMT. Undefined for what is neither. A time that has passed is 0.
 */
export function retryAfterMs(header: string | null, nowMs: number): number | undefined {
  const text = header?.trim() ?? ''
  // Fractions are against the RFC, and some APIs send them.
  if (/^\d+(\.\d+)?$/.test(text)) return Math.ceil(Number(text) * 1_000)
  // A date has a name of a day in front; Date.parse alone would take "-5" for a year.
  const atMs = /^[A-Za-z]{3,9},? /.test(text) ? Date.parse(/ \d{4}$/.test(text) ? `${text} GMT` : text) : Number.NaN
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs)
}
