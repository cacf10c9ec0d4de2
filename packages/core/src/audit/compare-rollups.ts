import { type Finding, hourText } from './finding.ts'

/** Sums of one hour, of a rollup or of what the raw rows say that the rollup should be. */
export interface HourSums {
  readonly hourMs: number
  /** By column. */
  readonly sums: Readonly<Record<string, bigint>>
  /** Of all its rows in no order: equal for equal rows, whatever blocks they came in. */
  readonly checksum: string
}

/** An hour of a rollup that differs, with what about it does. */
export interface HourDifference {
  readonly table: string
  readonly hourMs: number
  /** Columns whose sums differ; empty when the sums agree and yet the rows do not. */
  readonly columns: readonly { readonly name: string; readonly expected: bigint; readonly found: bigint }[]
}

/** Looks at the same hours, one after the other: raw rows, the rollup, raw rows again. */
export interface RollupLooks {
  readonly table: string
  readonly before: readonly HourSums[]
  readonly rollup: readonly HourSums[]
  readonly after: readonly HourSums[]
}

const none: Omit<HourSums, 'hourMs'> = { sums: {}, checksum: '0' }

const byHour = (hours: readonly HourSums[]) => new Map(hours.map((hour) => [hour.hourMs, hour]))

/** The columns of a rollup that lie outside of what the raw rows were before and after. */
function differingColumns(
  before: Pick<HourSums, 'sums'>,
  rollup: Pick<HourSums, 'sums'>,
  after: Pick<HourSums, 'sums'>,
) {
  const names = new Set([...Object.keys(before.sums), ...Object.keys(rollup.sums), ...Object.keys(after.sums)])
  return [...names].flatMap((name) => {
    const [least = 0n, found = 0n, most = 0n] = [before.sums[name], rollup.sums[name], after.sums[name]]
    // Corrections may take units back, so the second look can be the lower one.
    const [low, high] = least < most ? [least, most] : [most, least]
    return found < low || found > high ? [{ name, expected: most, found }] : []
  })
}

/**
 * The hours in which a rollup is not what its raw rows add up to. While rows still arrive for an hour its sums have to lie
 * between the two looks at the raw rows; an hour in which nothing arrived has to be equal row by row.
 */
export function compareRollup({ table, before, rollup, after }: RollupLooks): HourDifference[] {
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

/** As findings; `rows` says of an hour which of its rows differ. */
export function rollupFindings(
  differences: readonly HourDifference[],
  rows: (difference: HourDifference) => string,
): Finding[] {
  return differences.flatMap((difference): Finding[] => {
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
