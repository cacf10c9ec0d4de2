import { useEffect, useRef, useState } from 'preact/hooks'
import { count, short } from '../format.ts'
import { html } from '../html.ts'
import {
  type Bounds,
  fewSteps,
  labelled,
  linePath,
  niceMax,
  placed,
  type Series,
  ticksShown,
} from './chart-geometry.ts'
import { Table } from './table.ts'

export interface ChartProps {
  readonly title: string
  /** One for each value. */
  readonly labels: readonly string[]
  /** Below the axis, one for each value; empty for none. As `labels` if not given. */
  readonly ticks?: readonly string[]
  readonly series: readonly Series[]
  /** Which values are whole, from and to: those before and behind are dots. */
  readonly whole?: readonly [from: number, to: number]
  /** What is said below, such as until when is counted. */
  readonly note?: string
  /** On wide screens; in a panel that `fills` at least. */
  readonly height?: number
  /** How a value is written. */
  readonly write?: (value: number | null | undefined) => string
}

const gridLines = 2
/** Below it a chart is low, as on a telephone. */
const narrowPx = 500

function useSize(wideHeight: number) {
  const frame = useRef<HTMLDivElement>(null)
  const [{ width, height }, setSize] = useState({ width: 600, height: wideHeight })
  useEffect(() => {
    const watched = new ResizeObserver(([entry]) => {
      const { width: wide = 600, height: high = 0 } = entry?.contentRect ?? {}
      // The drawing itself gives no height to a frame that fills its panel.
      const isFilling = frame.current !== null && getComputedStyle(frame.current).position === 'relative'
      setSize({ width: Math.max(200, wide), height: isFilling ? Math.max(wideHeight, high) : wideHeight })
    })
    if (frame.current !== null) watched.observe(frame.current)
    return () => watched.disconnect()
  }, [wideHeight])
  return { frame, width, height: width < narrowPx ? Math.min(160, wideHeight) : height }
}

function ChartTable({ title, labels, series, write = count }: ChartProps) {
  const rows = labels.map((label, at) => ({ label, at })).toReversed()
  const columns = [
    { name: 'Time', cell: ({ label }: { label: string }) => label, isPlain: true },
    ...series.map(({ name, values }) => ({
      name,
      isNumber: true,
      cell: ({ at }: { at: number }) => write(values[at]),
    })),
  ]
  return html`<div class="chart-table"><${Table} caption=${title} columns=${columns} rows=${rows} keyOf=${({ at }: { at: number }) => String(at)} /></div>`
}

function Grid({
  bounds,
  max,
  ticks,
  labels,
}: { readonly bounds: Bounds; readonly max: number } & Pick<ChartProps, 'ticks' | 'labels'>) {
  const { x, y, left, right, height } = placed(bounds, labels.length, max)
  const values = Array.from({ length: gridLines + 1 }, (_, line) => (max * line) / gridLines)
  return html`
    ${values.map(
      (value) => html`<g key=${value}>
        <line class="axis" x1=${left} x2=${right} y1=${y(value)} y2=${y(value)} />
        <text x=${left - 8} y=${y(value) + 4} text-anchor="end">${short(value)}</text>
      </g>`,
    )}
    ${ticksShown(ticks ?? labels, x, left, right).map(
      ({ text, at, anchor }) => html`<text key=${at} x=${x(at)} y=${height - 4} text-anchor=${anchor}>${text}</text>`,
    )}`
}

function Lines({
  bounds,
  max,
  series,
  labels,
  whole: [from, to],
}: { readonly bounds: Bounds; readonly max: number; readonly whole: readonly [number, number] } & Pick<
  ChartProps,
  'series' | 'labels'
>) {
  const { x, y } = placed(bounds, labels.length, max)
  const few = fewSteps(series)
  return html`${series.map(({ name, kind, values }) => {
    const whole = values.map((value, at) => (at >= from && at < to ? value : null))
    return html`<g key=${name} class=${kind}>
      ${kind === 'allowed' && html`<path class="area" d=${linePath(whole, x, y, y(0))} />`}
      <path class="line" d=${linePath(whole, x, y)} />
      ${values.map((value, at) => value !== null && (at < from || at >= to) && html`<circle key=${at} class="open" cx=${x(at)} cy=${y(value)} r="2.5" />`)}
      ${few.map((at) => (whole[at] ?? 0) !== 0 && html`<circle key=${at} cx=${x(at)} cy=${y(whole[at] ?? 0)} r="4" />`)}
    </g>`
  })}`
}

/**
 * Lines over time. Arrow keys walk along it, and its values are read out; the same is a table on demand. Refusals are
 * dashed: nothing is told by colour alone.
 */
export function Chart(props: ChartProps) {
  const {
    title,
    labels,
    ticks,
    series,
    whole = [0, labels.length],
    note,
    height: wideHeight = 240,
    write = count,
  } = props
  const { frame, width, height } = useSize(wideHeight)
  const [at, setAt] = useState<number>()
  const [isTable, setTable] = useState(false)
  const bounds = { width, height }
  const max = niceMax(Math.max(0, ...series.flatMap(({ values }) => values.map((value) => value ?? 0))))
  const { x, y, left, right, top, bottom } = placed(bounds, labels.length, max)
  const clamped = (value: number) => Math.max(0, Math.min(labels.length - 1, value))
  const near = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect()
    setAt(clamped(Math.round(((event.clientX - box.left - left) / (right - left)) * (labels.length - 1))))
  }
  const walk = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (step === undefined || labels.length === 0) return
    event.preventDefault()
    setAt(clamped((at ?? (step > 0 ? -1 : labels.length)) + step))
  }
  const told = at === undefined ? '' : labelled(labels[at] ?? '', series, at, write)
  return html`<div class="stack chart-frame">
    <div class="drawn" ref=${frame}>${
      isTable
        ? html`<${ChartTable} ...${props} />`
        : html`<svg class="chart" height=${height} viewBox=${`0 0 ${width} ${height}`} tabindex="0" role="img"
            aria-label=${`${title}. Arrow keys read its values.`} onPointerMove=${near} onPointerLeave=${() => setAt(undefined)} onBlur=${() => setAt(undefined)} onKeyDown=${walk}>
            <${Grid} bounds=${bounds} max=${max} labels=${labels} ticks=${ticks} />
            <${Lines} bounds=${bounds} max=${max} labels=${labels} series=${series} whole=${whole} />
            ${at !== undefined && html`<line class="at" x1=${x(at)} x2=${x(at)} y1=${top} y2=${bottom} />`}
            ${at !== undefined && series.map(({ name, kind, values }) => typeof values[at] === 'number' && html`<circle key=${name} class=${kind} cx=${x(at)} cy=${y(values[at])} r="3.5" />`)}
          </svg>`
    }</div>
    <div class="row apart under">
      <div class="legend">${series.map(({ name, kind }) => html`<span class=${kind} key=${name}><svg width="20" height="8" aria-hidden="true"><path class="line" d="M0,4h20" /></svg>${name}</span>`)}</div>
      <span class="small told" role="status">${told}</span>
      <button class="bare small as-table" aria-pressed=${isTable} onClick=${() => setTable(!isTable)}>${isTable ? 'Chart' : 'Table'}</button>
    </div>
    ${note !== undefined && html`<p class="quiet small">${note}</p>`}
  </div>`
}
