import { type Discrepancy, hourText } from './discrepancy.ts'

/** Sums of one hour: of a rollup, or of its raw rows. */
export interface HourSums {
  readonly hourMs: number
  /** By column. */
  readonly sums: Readonly<Record<string, bigint>>
  /** Of all rows of the hour, whatever their order: equal for equal rows, whatever blocks they came in. */
  readonly checksum: string
}

/** An hour of a rollup that differs, with the columns that do. */
export interface HourDifference {
  readonly table: string
  readonly hourMs: number
  /** Columns whose sums differ; empty when the sums agree and yet the rows do not. */
  readonly columns: readonly { readonly name: string; readonly expected: bigint; readonly found: bigint }[]
}

/** Readings of the same hours, one after the other: raw rows, the rollup, raw rows again. */
export interface RollupReadings {
  readonly table: string
  readonly before: readonly HourSums[]
  readonly rollup: readonly HourSums[]
  readonly after: readonly HourSums[]
}

const none: Omit<HourSums, 'hourMs'> = { sums: {}, checksum: '0' }

const byHour = (hours: readonly HourSums[]) => new Map(hours.map((hour) => [hour.hourMs, hour]))

/** The columns of a rollup that are outside of what the raw rows were before and after. */
function differingColumns(
  before: Pick<HourSums, 'sums'>,
  rollup: Pick<HourSums, 'sums'>,
  after: Pick<HourSums, 'sums'>,
) {
  const names = new Set([...Object.keys(before.sums), ...Object.keys(rollup.sums), ...Object.keys(after.sums)])
  return [...names].flatMap((name) => {
    const [least = 0n, found = 0n, most = 0n] = [before.sums[name], rollup.sums[name], after.sums[name]]
    // Corrections may refund units, so the second reading can be the lower one.
    const [low, high] = least < most ? [least, most] : [most, least]
    return found < low || found > high ? [{ name, expected: most, found }] : []
  })
}

/**
 * Returns the hours in which a rollup is not what its raw rows add up to. While rows still arrive for an hour its sums
 * have to be between the two readings of the raw rows; an hour in which no row arrived has to be equal row by row.
 */
export function compareRollup({ table, before, rollup, after }: RollupReadings): HourDifference[] {
  const [first, found, last] = [byHour(before), byHour(rollup), byHour(after)]
  const hours = [...new Set([...first.keys(), ...found.keys(), ...last.keys()])].sort((a, b) => a - b)
  return hours.flatMap((hourMs) => {
    const [one, other, two] = [first.get(hourMs) ?? none, found.get(hourMs) ?? none, last.get(hourMs) ?? none]
    const columns = differingColumns(one, other, two)
    const isSettled = one.checksum === two.checksum
    const differs = columns.length > 0 || (isSettled && other.checksum !== one.checksum)
    return differs ? [{ table, hourMs, columns }] : []
  })
}

/** Returns the differences as discrepancies; `rows` names the rows of an hour that differ. */
export function rollupDiscrepancies(
  differences: readonly HourDifference[],
  rows: (difference: HourDifference) => string,
): Discrepancy[] {
  return differences.flatMap((difference): Discrepancy[] => {
    const { table, hourMs, columns } = difference
    const common = { check: 'rollups', where: hourText(hourMs), note: rows(difference) } as const
    if (columns.length === 0) {
      return [
        { ...common, what: `${table}, rows`, expected: 'those that raw adds up to', found: 'others, of equal sums' },
      ]
    }
    return columns.map(({ name, expected, found }) => ({
      ...common,
      what: `${table}.${name}`,
      expected: String(expected),
      found: String(found),
    }))
  })
}
