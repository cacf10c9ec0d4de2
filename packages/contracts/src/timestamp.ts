const digits3 = Array.from({ length: 1_000 }, (_, ms) => String(ms).padStart(3, '0'))

let cachedSecond = Number.NaN
let cachedText = ''

/**
 * `YYYY-MM-DD hh:mm:ss.SSS` in UTC, as ClickHouse reads it. The part to the second is kept: records come in the order
 * of time.
 */
export function formatTs(ms: number): string {
  const second = Math.floor(ms / 1_000)
  if (second !== cachedSecond) {
    cachedText = new Date(second * 1_000).toISOString().slice(0, 19).replace('T', ' ')
    cachedSecond = second
  }
  return `${cachedText}.${digits3[ms - second * 1_000]}`
}

const form = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/

/** Milliseconds since the epoch of such a text; undefined if it is not one. */
export function parseTs(text: string): number | undefined {
  if (!form.test(text)) return undefined
  const ms = Date.parse(`${text.replace(' ', 'T')}Z`)
  return Number.isNaN(ms) ? undefined : ms
}
