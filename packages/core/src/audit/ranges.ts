/** Whole numbers from `from` to `to`, both included. */
export interface Range {
  readonly from: number
  readonly to: number
}

/** Returns how many numbers the ranges hold; they do not overlap. */
export const countOf = (ranges: readonly Range[]): number =>
  ranges.reduce((sum, { from, to }) => sum + to - from + 1, 0)

/** Returns the parts of a range that none of the others covers, in order. */
export function uncovered(range: Range, covers: readonly Range[]): Range[] {
  const left: Range[] = []
  let next = range.from
  for (const { from, to } of [...covers].sort((a, b) => a.from - b.from)) {
    if (to < next) continue
    if (from > range.to) break
    if (from > next) left.push({ from: next, to: from - 1 })
    next = to + 1
  }
  if (next <= range.to) left.push({ from: next, to: range.to })
  return left
}

/** Joins ranges that are at most `apart` numbers from each other. They are given in order. */
export function joined(ranges: readonly Range[], apart: number): Range[] {
  const result: Range[] = []
  for (const range of ranges) {
    const last = result.at(-1)
    if (last !== undefined && range.from - last.to <= apart)
      result[result.length - 1] = { from: last.from, to: range.to }
    else result.push(range)
  }
  return result
}

/** Cuts a range into pieces of at most `length` numbers. */
export function pieces({ from, to }: Range, length: number): Range[] {
  const result: Range[] = []
  for (let start = from; start <= to; start += length)
    result.push({ from: start, to: Math.min(to, start + length - 1) })
  return result
}

/** `17`, `17-20`; of many the first few. */
export function rangesText(ranges: readonly Range[]): string {
  const shown = ranges.slice(0, 5).map(({ from, to }) => (from === to ? String(from) : `${from}-${to}`))
  return ranges.length > shown.length ? `${shown.join(', ')}, …` : shown.join(', ')
}
