import type { Usage, UsageRow } from '@weir/api/usage.ts'
import { count, counted, quantity } from '@weir/core/format.ts'
import { stepLabel, tickLabel, time } from '../format.ts'
import { html } from '../html.ts'
import { Chart } from './chart.ts'
import type { Series } from './chart-scale.ts'
import { useMarkers } from './markers.ts'
import { showSpan, useSpan } from './span.ts'
import { type AnyRow, currencyOf } from './usage-columns.ts'
import { valueName } from './words.ts'

const stepMsOf = (step: string) =>
  ({ minute: 60_000, quarter_hour: 900_000, hour: 3_600_000, week: 604_800_000 })[step] ?? 86_400_000

/** Which of the steps are whole: a span may begin within its first, and the last ones may still grow. */
const wholeSteps = ({ rows, from, step, complete_through: through }: Usage): readonly [number, number] => {
  const endMs = through === null ? 0 : Date.parse(through)
  const whole = rows.findLastIndex(({ ts = '' }) => Date.parse(ts) + stepMsOf(step) <= endMs) + 1
  return [Date.parse(rows[0]?.ts ?? from) < Date.parse(from) ? 1 : 0, whole]
}

/** Sums after the last that is counted are null in a filled answer. */
const known = (sum: string | null = null) => (sum === null ? null : Number(sum))

/** What is drawn: decisions by their outcome, or one sum. */
export type Measure = 'decisions' | 'cost' | 'count' | 'denied' | 'quantity'
export const measureNames: Readonly<Record<Exclude<Measure, 'quantity'>, string>> = {
  decisions: 'allowed and refused',
  cost: 'units',
  count: 'decisions',
  denied: 'refused',
}

/** The sum of a row that a measure is. */
export const sumOf = (measure: Measure) => (measure === 'decisions' ? 'count' : measure)

/** A line for each of the groups, whose steps are those of the whole. */
function seriesOf(groups: Usage, by: string, measure: Measure, steps: readonly UsageRow[]): Series[] {
  const lines = new Map<string, Map<number, number | null>>()
  for (const row of groups.rows) {
    const value = String(row[by as 'subject'] ?? '')
    const name = row.other === true ? 'others' : valueName(by, value) || 'none'
    const line = lines.get(name) ?? new Map<number, number | null>()
    line.set(Date.parse(row.ts ?? ''), known((row as AnyRow)[sumOf(measure)]))
    lines.set(name, line)
  }
  const total = (line: Map<number, number | null>) =>
    [...line.values()].reduce<number>((sum, one) => sum + (one ?? 0), 0)
  const sorted = [...lines].toSorted(([a, one], [b, two]) =>
    a === 'others' ? 1 : b === 'others' ? -1 : total(two) - total(one),
  )
  return sorted.map(([name, line], at) => ({
    name,
    kind: name === 'others' ? 'before' : `g${at + 1}`,
    values: steps.map(({ ts = '', count: all }) => (all === null ? null : (line.get(Date.parse(ts)) ?? 0))),
  }))
}

function totalsOf(usage: Usage, measure: Measure, unit: string): Series[] {
  const values = (name: 'allowed' | Exclude<Measure, 'decisions'>) => usage.rows.map((row: AnyRow) => known(row[name]))
  if (measure !== 'decisions') {
    const name = measure === 'quantity' ? unit : measureNames[measure]
    return [{ name, kind: measure === 'denied' ? 'refused' : 'allowed', values: values(measure) }]
  }
  return [
    { name: 'allowed', kind: 'allowed', values: values('allowed') },
    { name: 'refused', kind: 'refused', values: values('denied') },
  ]
}

export interface UsageChartProps {
  readonly usage: Usage
  readonly title: string
  readonly measure?: Measure
  /** Whose quantities they are. */
  readonly unit?: string
  /** The same question by one column, for a line each. */
  readonly groups?: Usage | undefined
  readonly by?: string
  /** The same question of an earlier span. */
  readonly before?: Usage | undefined
  /** Its days. */
  readonly beforeLabel?: string | undefined
  /** Whose it is, where it is of one. */
  readonly subject?: string
  readonly height?: number
}

/** Usage over time: bars of what each step had. What is not counted yet is a gap. */
export function UsageChart({
  usage,
  title,
  measure = 'decisions',
  unit = '',
  groups,
  by = '',
  before,
  beforeLabel = 'before',
  subject = '',
  height = 240,
}: UsageChartProps) {
  const { zone } = useSpan()
  const { rows, step, complete_through: through } = usage
  const begins = rows.map(({ ts = '' }) => Date.parse(ts))
  const last = begins.at(-1) ?? 0
  const values = rows.map((_, at) => known((before?.rows[at] as AnyRow | undefined)?.[sumOf(measure)]))
  const currency = currencyOf(usage)
  // An axis of money is in the currency, and its sums are in billionths.
  const scale = currency ? 1e9 : 1
  const scaled = (all: readonly (number | null)[]) => all.map((value) => value && value / scale)
  const series = groups === undefined ? totalsOf(usage, measure, unit) : seriesOf(groups, by, measure, rows)
  const write = (value: number) =>
    unit === ''
      ? counted(value, measure === 'cost' ? 'unit' : 'decision')
      : currency
        ? quantity(Math.round(value * scale), currency)
        : `${count(value)} ${unit}`
  return html`<${Chart}
    title=${title}
    shape="bars"
    zone=${zone}
    begins=${begins}
    endMs=${last + stepMsOf(step)}
    label=${(at: number) => stepLabel(rows[at]?.ts ?? '', step, zone)}
    tick=${(ms: number, isDay: boolean) => tickLabel(ms, isDay, zone)}
    whole=${wholeSteps(usage)}
    series=${series.map((one) => ({ ...one, values: scaled(one.values) }))}
    outline=${before === undefined ? undefined : { name: beforeLabel, kind: 'before', values: scaled(values) }}
    markers=${useMarkers(subject)}
    write=${(value: number | null | undefined) => (typeof value === 'number' ? write(value) : '–')}
    height=${height}
    onSpan=${showSpan}
    note=${through === null ? 'Nothing was counted yet.' : `Counted until ${time(through, zone)}.`}
  />`
}
