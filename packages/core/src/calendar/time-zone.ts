import { Temporal } from 'temporal-polyfill'

/** The form of all time zones; `parseTimeZone` also asks whether there is such a zone. */
export const timeZonePattern = /^[A-Za-z][A-Za-z0-9_+/-]{1,63}$/

/** Names that ClickHouse 26.7 lacks, and who has the same clocks; Coyhaique's are those since March 2025. */
const sameClocks = new Map([
  ['US/Pacific-New', 'America/Los_Angeles'],
  ['Canada/East-Saskatchewan', 'America/Regina'],
  ['America/Coyhaique', 'America/Punta_Arenas'],
])

/** Rules of old machines that Intl knows, and that neither IANA nor ClickHouse has as zones. */
const isSystemV = /^SystemV\//i

/**
 * An IANA time zone such as `Asia/Kathmandu`, in upper and lower case as ClickHouse needs it. Offsets are refused: a
 * billing day follows its zone's law.
 */
export function parseTimeZone(text: string): string | undefined {
  if (!timeZonePattern.test(text) || isSystemV.test(text)) return undefined
  try {
    const name = Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(text).timeZoneId
    return sameClocks.get(name) ?? name
  } catch {
    return undefined
  }
}
