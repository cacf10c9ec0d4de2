/** What a chart's series, scales and steps are; how they are drawn is in `plot.ts`. */

/** What is drawn of one measure: null where nothing is known. */
export interface Series {
  readonly name: string
  /** How it is drawn: what was allowed is blue, what was refused red and hatched; groups are `g1` to `g6`. */
  readonly kind: string
  readonly values: readonly (number | null)[]
}

/** Which steps are whole, from and to: those before and behind are drawn as *so far*, and set no scale. */
export type WholeSteps = readonly [from: number, to: number]

/** The least round number that is not below, whose quarters are round as well; whole ones of what is whole. */
export function niceMax(value: number): number {
  if (Number.isInteger(value) && value <= 8) return value <= 4 ? 4 : 8
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 1.2, 1.6, 2, 2.4, 2.8, 3.2, 3.6, 4, 6, 8, 10].find((one) => one * power >= value) ?? 10) * power
}

const intervals = 4
/** The five values of the upright axis. */
export const ticksOf = (max: number): number[] =>
  Array.from({ length: intervals + 1 }, (_, at) => (max * at) / intervals)

/** Each series on top of those before it; a step that none knows stays unknown. */
export function stacked(series: readonly Series[]): (number | null)[][] {
  const sums: number[] = []
  return series.map(({ values }) =>
    values.map((value, at) => {
      sums[at] = (sums[at] ?? 0) + (value ?? 0)
      return value === null ? null : sums[at]
    }),
  )
}

/** The highest value of whole steps; of all where none is whole. */
export function highest(lines: readonly (readonly (number | null)[])[], [from, to]: WholeSteps): number {
  const most = (some: readonly (readonly (number | null)[])[]) => Math.max(0, ...some.flat().map((one) => one ?? 0))
  return most(lines.map((values) => values.slice(from, to))) || most(lines)
}

/** The step that a time falls in, among steps by when they begin. */
export const stepAt = (begins: readonly number[], ms: number): number =>
  Math.max(
    0,
    begins.findLastIndex((begin) => begin <= ms),
  )

/** The values at a step, the highest first, those of no value left out. */
export const valuesAt = (series: readonly Series[], at: number) =>
  series
    .flatMap(({ name, kind, values }) => (typeof values[at] === 'number' ? [{ name, kind, value: values[at] }] : []))
    .toSorted((a, b) => b.value - a.value)
