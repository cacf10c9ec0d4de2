/** Where a chart's lines and texts are. */

/** What is drawn of one measure: null where nothing is known. */
export interface Series {
  readonly name: string
  /** How it is drawn: what was allowed is blue, what was refused dashed; groups are `g1` to `g6`. */
  readonly kind: string
  readonly values: readonly (number | null)[]
}

export interface Bounds {
  readonly width: number
  readonly height: number
}

const edges = { top: 10, bottom: 22, left: 44, right: 10 }

/** The least round number that is not below, whose half is round as well. */
export function niceMax(value: number): number {
  if (value <= 4) return 4
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10].find((one) => one * power >= value) ?? 10) * power
}

/** Where the value `at` of so many is, and how high one of `max` is. */
export function placed({ width, height }: Bounds, count: number, max: number) {
  const [top, bottom, left, right] = [edges.top, height - edges.bottom, edges.left, width - edges.right]
  return {
    top,
    bottom,
    left,
    right,
    height,
    x: (at: number) => (count < 2 ? (left + right) / 2 : left + ((right - left) * at) / (count - 1)),
    y: (value: number) => top + (bottom - top) * (1 - value / max),
  }
}

/** The line through the values; a hole is a hole. With a base it is the area above that. */
export function linePath(
  values: readonly (number | null)[],
  x: (at: number) => number,
  y: (value: number) => number,
  base?: number,
): string {
  let path = ''
  let begun = -1
  const end = (at: number) => {
    // A value between two holes is a point.
    if (begun === at) path += 'h1'
    if (base !== undefined) path += `V${base}H${x(begun).toFixed(1)}Z`
    begun = -1
  }
  for (const [at, value] of values.entries()) {
    if (value === null) {
      if (begun >= 0) end(at - 1)
      continue
    }
    path += `${begun < 0 ? 'M' : 'L'}${x(at).toFixed(1)},${y(value).toFixed(1)}`
    if (begun < 0) begun = at
  }
  if (begun >= 0) end(values.length - 1)
  return path
}

/** Texts of the axis need so much room. */
const tickPx = 76

/** As many texts below the axis as have room. */
export function ticksShown(ticks: readonly string[], x: (at: number) => number, left: number, right: number) {
  const all = ticks.flatMap((text, at) => (text === '' ? [] : [{ text, at }]))
  const every = Math.max(1, Math.ceil((all.length * tickPx) / Math.max(1, right - left)))
  const shown = all.filter((_, place) => place % every === 0)
  return shown.map((one) => {
    const place = x(one.at)
    return { ...one, anchor: place > right - tickPx / 3 ? 'end' : 'middle' }
  })
}

/** Of so few steps one reads the values: there is no line to follow. */
const fewMax = 2
/** The steps that have anything, if they are few; else none. */
export function fewSteps(series: readonly Series[]): readonly number[] {
  const steps = series[0]?.values.map((_, at) => at) ?? []
  const filled = steps.filter((at) => series.some(({ values }) => (values[at] ?? 0) !== 0))
  return filled.length > fewMax ? [] : filled
}

/** What is read out at a value. */
export const labelled = (
  label: string,
  series: readonly Series[],
  at: number,
  write: (value: number | null | undefined) => string,
): string => `${label}: ${series.map(({ name, values }) => `${write(values[at])} ${name}`).join(', ')}`
