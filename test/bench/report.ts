/** One measured thing over the rounds of a run. */
export interface BenchRow {
  readonly label: string
  readonly unit: string
  readonly median: number
  readonly min: number
  readonly max: number
}

/** Two things of the same round divided: what a noisy machine does to both cancels out. */
export interface BenchRatio {
  readonly label: string
  readonly median: number
  readonly min: number
  readonly max: number
  /** What is aimed at, in words; a bench reports and never fails on it. */
  readonly target?: string
}

export interface BenchReport {
  readonly name: string
  readonly rows: readonly BenchRow[]
  readonly ratios: readonly BenchRatio[]
}

/** How a bench is run: `progress` gets a line per slow step, `json` says that nothing else may be printed. */
export interface BenchOptions {
  readonly rounds: number
  readonly json: boolean
  readonly progress: (line: string) => void
}

/** Median, smallest and largest of the rounds. */
export function spread(values: readonly number[]): { median: number; min: number; max: number } {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  return { median: middle, min: sorted[0] ?? Number.NaN, max: sorted.at(-1) ?? Number.NaN }
}

const number = (value: number): string =>
  value.toLocaleString('en-US', { maximumFractionDigits: Math.abs(value) < 100 ? 2 : 0 })

/** The report as a text table, for people. */
export function formatReport(report: BenchReport): string {
  const cells = [
    ['', 'median', 'min', 'max', ''],
    ...report.rows.map((row) => [row.label, number(row.median), number(row.min), number(row.max), row.unit]),
    ...report.ratios.map(({ label, median, min, max, target }) => [
      label,
      number(median),
      number(min),
      number(max),
      target === undefined ? '×' : `× (target ${target})`,
    ]),
  ]
  const widths = [0, 1, 2, 3].map((column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const line = (row: string[]) =>
    row
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[0] ?? 0) : at === 4 ? cell : cell.padStart(widths[at] ?? 0)))
      .join('  ')
  return [report.name, ...cells.map(line)].map((text) => text.trimEnd()).join('\n')
}
