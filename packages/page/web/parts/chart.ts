import { useEffect, useRef, useState } from 'preact/hooks'
import { count, short } from '../format.ts'
import { html } from '../html.ts'
import { Table } from './table.ts'

/** What is drawn of one measure: null where nothing is known yet. */
export interface Series {
  readonly name: string
  readonly kind: 'allowed' | 'refused' | 'shadow'
  readonly values: readonly (number | null)[]
}

export interface ChartProps {
  readonly title: string
  /** One for each value. */
  readonly labels: readonly string[]
  readonly series: readonly Series[]
  /** How many values are whole; those behind are drawn paler. */
  readonly wholeCount?: number
  /** What is said below, such as until when is counted. */
  readonly note?: string
}

const [top, bottom, left, right] = [8, 20, 44, 8]
const gridLines = 2

/** The least round number that is not below, whose half is round as well. */
function niceMax(value: number): number {
  if (value <= 4) return 4
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 4, 6, 8, 10].find((one) => one * power >= value) ?? 10) * power
}

/** The line through the values; a hole is a hole. */
function linePath(values: readonly (number | null)[], x: (at: number) => number, y: (value: number) => number): string {
  let path = ''
  for (const [at, value] of values.entries()) {
    if (value === null) continue
    const isFirst = at === 0 || values[at - 1] === null
    path += `${isFirst ? 'M' : 'L'}${x(at).toFixed(1)},${y(value).toFixed(1)}`
    // A value between two holes is a point.
    if (isFirst && (values[at + 1] ?? null) === null) path += 'h1'
  }
  return path
}

function useWidth() {
  const frame = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(600)
  useEffect(() => {
    const watched = new ResizeObserver(([entry]) => setWidth(Math.max(200, entry?.contentRect.width ?? 600)))
    if (frame.current !== null) watched.observe(frame.current)
    return () => watched.disconnect()
  }, [])
  return { frame, width }
}

/** Labels of the axis: as many as have room. */
const labelsShown = (labels: readonly string[], width: number) => {
  const every = Math.max(1, Math.ceil(labels.length / Math.max(2, Math.floor(width / 110))))
  return labels.flatMap((label, at) => (at % every === 0 ? [{ label, at }] : []))
}

function ChartTable({ title, labels, series, onChart }: ChartProps & { readonly onChart: () => void }) {
  const rows = labels.map((label, at) => ({ label, at })).toReversed()
  const columns = [
    { name: 'Time', cell: ({ label }: { label: string }) => label },
    ...series.map(({ name, values }) => ({
      name,
      isNumber: true,
      cell: ({ at }: { at: number }) => count(values[at]),
    })),
  ]
  return html`<div class="stack">
    <${Table} caption=${title} columns=${columns} rows=${rows} keyOf=${({ at }: { at: number }) => String(at)} />
    <div><button class="small" onClick=${onChart}>Chart</button></div>
  </div>`
}

/**
 * Lines over time. Arrow keys walk along it, and its values are read out; the same is a table on demand. Refusals are
 * dashed: nothing is told by colour alone.
 */
export function Chart(props: ChartProps) {
  const { title, labels, series, wholeCount = labels.length, note } = props
  const { frame, width } = useWidth()
  const [at, setAt] = useState<number>()
  const [isTable, setTable] = useState(false)
  const height = width < 500 ? 160 : 220
  const max = niceMax(Math.max(0, ...series.flatMap(({ values }) => values.map((value) => value ?? 0))))
  const inner = width - left - right
  const x = (index: number) => left + (labels.length < 2 ? inner / 2 : (inner * index) / (labels.length - 1))
  const y = (value: number) => top + (height - top - bottom) * (1 - value / max)
  const near = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect()
    const share = (event.clientX - box.left - left) / inner
    setAt(Math.max(0, Math.min(labels.length - 1, Math.round(share * (labels.length - 1)))))
  }
  const walk = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    setAt(Math.max(0, Math.min(labels.length - 1, (at ?? (step > 0 ? -1 : labels.length)) + step)))
  }
  const told =
    at === undefined
      ? undefined
      : `${labels[at]}: ${series.map(({ name, values }) => `${count(values[at])} ${name}`).join(', ')}`
  const grid = Array.from({ length: gridLines + 1 }, (_, line) => (max * line) / gridLines)
  if (isTable) return html`<${ChartTable} ...${props} onChart=${() => setTable(false)} />`
  return html`<div class="stack" ref=${frame}>
    <svg
      class="chart"
      viewBox=${`0 0 ${width} ${height}`}
      tabindex="0"
      role="img"
      aria-label=${`${title}. Arrow keys read its values.`}
      onPointerMove=${near}
      onPointerLeave=${() => setAt(undefined)}
      onKeyDown=${walk}
    >
      ${grid.map(
        (value) => html`<g key=${value}>
          <line class="axis" x1=${left} x2=${width - right} y1=${y(value)} y2=${y(value)} />
          <text x=${left - 6} y=${y(value) + 4} text-anchor="end">${short(value)}</text>
        </g>`,
      )}
      ${labelsShown(labels, inner).map(
        ({ label, at: index }) =>
          html`<text x=${x(index)} y=${height - 4} text-anchor=${index === 0 ? 'start' : index === labels.length - 1 ? 'end' : 'middle'}>${label}</text>`,
      )}
      ${series.map(({ name, kind, values }) => {
        const whole = values.map((value, index) => (index < wholeCount ? value : null))
        const open = values.map((value, index) => (index >= wholeCount - 1 ? value : null))
        return html`<g key=${name}>
          <path class=${`line ${kind}`} d=${linePath(whole, x, y)} />
          <path class=${`line open ${kind}`} d=${linePath(open, x, y)} />
        </g>`
      })}
      ${at !== undefined && html`<line class="at" x1=${x(at)} x2=${x(at)} y1=${top} y2=${height - bottom} />`}
    </svg>
    <div class="row apart">
      <div class="legend">
        ${series.map(({ name, kind }) => html`<span class=${kind} key=${name}><i />${name}</span>`)}
      </div>
      <span class="small" role="status">${told ?? ''}</span>
      <button class="bare small" onClick=${() => setTable(true)}>Table</button>
    </div>
    ${note !== undefined && html`<p class="quiet small">${note}</p>`}
  </div>`
}

export interface Bar {
  readonly name: string
  readonly href?: string | undefined
  readonly value: number
  readonly aside?: string
}

/** Who has how much, the largest first. */
export function Bars({
  bars,
  kind = 'allowed',
}: {
  readonly bars: readonly Bar[]
  readonly kind?: 'allowed' | 'refused'
}) {
  const max = Math.max(1, ...bars.map(({ value }) => value))
  return html`<div class=${`bars ${kind}`}>
    ${bars.map(
      ({ name, href, value, aside = '' }) => html`
        <span class="name">${href === undefined ? name : html`<a href=${href}>${name}</a>`}</span>
        <svg viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">
          <rect width=${Math.max(0.5, (100 * value) / max)} height="12" rx="1" />
        </svg>
        <span class="number">${count(value)}</span>
        <span class="number quiet aside">${aside}</span>
      `,
    )}
  </div>`
}
