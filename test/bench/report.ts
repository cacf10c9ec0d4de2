/** Median, smallest and largest of the rounds. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** One measured thing over the rounds of a run. */
export interface BenchRow extends Spread {
  readonly label: string
  readonly unit: string
}

/** Two things of the same round divided: what a noisy machine does to both cancels out. */
export interface BenchRatio extends Spread {
  readonly label: string
  /** What is aimed at, in words; a bench reports and never fails on it. */
  readonly target?: string
}

/** Several things measured of each of many contestants; `undefined` where one has no such figure. */
export interface BenchTable {
  readonly title: string
  /** With their units. */
  readonly columns: readonly string[]
  readonly rows: readonly { readonly label: string; readonly values: readonly (Spread | undefined)[] }[]
}

export interface BenchReport {
  readonly name: string
  /** Printed first. */
  readonly tables?: readonly BenchTable[]
  readonly rows: readonly BenchRow[]
  readonly ratios: readonly BenchRatio[]
}

/** Options of single benches; those with values may be given several times. */
export interface MoreOptions {
  readonly rate: readonly string[]
  readonly partitions: readonly string[]
  /** Folders of checkouts to measure instead of this one. */
  readonly tree: readonly string[]
  /** How many subjects ask. */
  readonly subjects: readonly string[]
  /** Their requests of a second share records. */
  readonly coalesce: boolean
  /** Decisions to make. */
  readonly rows: readonly string[]
  /** Folder in which they are kept for later runs. */
  readonly data: readonly string[]
}

/** How a bench is run: `progress` gets a line per slow step, `json` says that nothing else may be printed. */
export interface BenchOptions {
  readonly rounds: number
  readonly json: boolean
  readonly more: MoreOptions
  readonly progress: (line: string) => void
}

/** Median, smallest and largest of the rounds. */
export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  return { median: middle, min: sorted[0] ?? Number.NaN, max: sorted.at(-1) ?? Number.NaN }
}

const number = (value: number): string =>
  value.toLocaleString('en-US', { maximumFractionDigits: Math.abs(value) < 100 ? 2 : 0 })

/** Lines of aligned cells: the first column to the left, the others to the right. */
function align(cells: readonly (readonly string[])[], leftFrom = Number.POSITIVE_INFINITY): string[] {
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const pad = (text: string, at: number) =>
    at === 0 || at >= leftFrom ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0)
  return cells.map((row) => row.map(pad).join('  ').trimEnd())
}

const spreadText = ({ median, min, max }: Spread): string =>
  min === max ? number(median) : `${number(median)} [${number(min)} ${number(max)}]`

function tableLines({ title, columns, rows }: BenchTable): string[] {
  const cells = rows.map(({ label, values }) => [
    label,
    ...values.map((value) => (value === undefined ? '' : spreadText(value))),
  ])
  return [...align([[title, ...columns], ...cells]), '']
}

/** The report as text tables, for people. */
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
  const lines = cells.length > 1 ? align(cells, 4) : []
  return [report.name, ...(report.tables ?? []).flatMap(tableLines), ...lines].join('\n')
}
