import { moment, quantity } from '@weir/core/format.ts'

/** The zone of the person at the terminal: TZ, else the machine's. */
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** A count, or an amount of money, as a cell of a table has it, whatever its size; `-` for what is not known. */
export const countCell = (value: number | bigint | string | null, currency?: string): string =>
  value === null ? '-' : quantity(value, currency)

/** A moment in the reader's zone, `27 Nov 2026, 11:02:03 UTC`, or the word for none; other text as it is. */
export function momentCell(at: number | string | null | undefined, none = '-'): string {
  if (at === null || at === undefined) return none
  return Number.isNaN(new Date(at).getTime()) ? String(at) : moment(at, zone)
}
