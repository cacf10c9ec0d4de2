import { count } from '@weir/core/format.ts'
import { useEffect, useRef, useState } from 'preact/hooks'
import { html } from '../html.ts'
import { type Series, valuesAt, type WholeSteps } from './chart-scale.ts'
import { type Marker, Plot, type PlotData, type PlotOptions } from './plot.ts'
import { Table } from './table.ts'

export interface ChartProps extends Pick<PlotOptions, 'shape' | 'zone' | 'tick'> {
  readonly title: string
  /** When each step begins, milliseconds since 1970; `endMs` is when the last one ends. */
  readonly begins: readonly number[]
  readonly endMs: number
  readonly series: readonly Series[]
  readonly outline?: Series | undefined
  readonly whole?: WholeSteps
  readonly markers?: readonly Marker[]
  /** How a step is called. */
  readonly label: (at: number) => string
  /** What is said below, such as until when is counted. */
  readonly note?: string
  /** On wide screens; in a panel that `fills` at least. */
  readonly height?: number
  /** How a value is written, with its unit. */
  readonly write?: (value: number | null | undefined) => string
  /** Goes to the span that was chosen, by dragging or by the keyboard. */
  readonly onSpan?: ((fromMs: number, toMs: number) => void) | undefined
}

/** What the markers of a kind are. */
const markerNames: Readonly<Record<string, string>> = { change: 'policy change', alert: 'alert', block: 'block' }

/** Markers that a tooltip names. */
const markersNamed = 3

/** Changes where the colours do: what is drawn on a canvas has to be drawn again. */
function useScheme(): string {
  const now = () =>
    `${document.documentElement.dataset.scheme ?? ''} ${matchMedia('(prefers-color-scheme: dark)').matches}`
  const [scheme, setScheme] = useState(now)
  useEffect(() => {
    const again = () => setScheme(now())
    const system = matchMedia('(prefers-color-scheme: dark)')
    const chosen = new MutationObserver(again)
    system.addEventListener('change', again)
    chosen.observe(document.documentElement, { attributeFilter: ['data-scheme'] })
    return () => {
      system.removeEventListener('change', again)
      chosen.disconnect()
    }
  }, [])
  return scheme
}

function ChartTable({ title, begins, series, label, write = count }: ChartProps) {
  const rows = begins.map((_, at) => at).toReversed()
  const columns = [
    { name: 'Time', cell: label, isPlain: true },
    ...series.map(({ name, values }) => ({ name, isNumber: true, cell: (at: number) => write(values[at]) })),
  ]
  return html`<div class="chart-table"><${Table} caption=${title} columns=${columns} rows=${rows} keyOf=${String} /></div>`
}

/** What is known of a step: shown at the cursor, and read out. */
function stepShown(
  { begins, endMs, series, outline, whole = [0, begins.length], markers = [], label, write = count }: ChartProps,
  at: number | undefined,
) {
  if (at === undefined || begins[at] === undefined) return undefined
  const [begin, end] = [begins[at], begins[at + 1] ?? endMs]
  const isSoFar = at < whole[0] || at >= whole[1]
  const values = valuesAt(outline === undefined ? series : [...series, outline], at)
  const happened = markers.filter(({ ms }) => ms >= begin && ms < end)
  return {
    title: `${label(at)}${isSoFar ? ', so far' : ''}`,
    values: values.map((one) => ({ ...one, text: write(one.value) })),
    happened: happened.slice(0, markersNamed),
    more: Math.max(0, happened.length - markersNamed),
  }
}

function Tooltip({
  step,
  left,
  isRight,
}: {
  readonly step: NonNullable<ReturnType<typeof stepShown>>
  readonly left: number
  readonly isRight: boolean
}) {
  // Its place is known only now: a style attribute would need a weaker policy than ours.
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => box.current?.style.setProperty('left', `${left}px`), [left])
  return html`<div class=${`tooltip ${isRight ? 'at-right' : ''}`} ref=${box} aria-hidden="true">
    <b>${step.title}</b>
    ${step.values.length === 0 && html`<span class="quiet">not counted yet</span>`}
    ${step.values.map(({ name, kind, text }) => html`<span class="row apart" key=${name}><span class=${`swatch ${kind}`} /><span>${name}</span><b>${text}</b></span>`)}
    ${step.happened.map(({ name, kind, ms }) => html`<span class="small" key=${`${ms} ${name}`}><span class=${`swatch ${kind}`} /> ${name}</span>`)}
    ${step.more > 0 && html`<span class="small quiet">and ${step.more} more</span>`}
  </div>`
}

/** The step at the pointer or the keyboard, and the steps that the keyboard has chosen. */
function useSteps({ begins, endMs, onSpan }: ChartProps, plot: { readonly current: Plot | undefined }) {
  const [at, setAt] = useState<number>()
  const [chosen, setChosen] = useState<readonly [from: number, to: number]>()
  useEffect(() => plot.current?.choose(chosen && [Math.min(...chosen), Math.max(...chosen) + 1]), [chosen])
  const leave = () => {
    setChosen(undefined)
    plot.current?.point(undefined)
    setAt(undefined)
  }
  const walk = (event: KeyboardEvent) => {
    const last = begins.length - 1
    const from = at ?? (event.key === 'ArrowRight' ? -1 : last + 1)
    const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: last }[event.key]
    if (event.key === 'Enter' && onSpan !== undefined && at !== undefined) {
      const [first, end] = chosen === undefined ? [at, at] : [Math.min(...chosen), Math.max(...chosen)]
      setChosen(undefined)
      onSpan(begins[first] ?? 0, begins[end + 1] ?? endMs)
    }
    if (event.key === 'Escape') leave()
    if (to === undefined || last < 0) return
    event.preventDefault()
    const next = Math.max(0, Math.min(last, to))
    setChosen(event.shiftKey && onSpan !== undefined ? [chosen?.[0] ?? at ?? next, next] : undefined)
    plot.current?.point(next)
    setAt(next)
  }
  return { at, setAt, leave, walk }
}

/** What is drawn, and draws it again with each answer, size and scheme of colours. */
function usePlot(props: ChartProps, only: string | undefined, isTable: boolean) {
  const { begins, endMs, series, outline, whole = [0, begins.length], markers = [], shape, zone, onSpan } = props
  const [frame, legend] = [useRef<HTMLDivElement>(null), useRef<HTMLDivElement>(null)]
  const plot = useRef<Plot | undefined>(undefined)
  const latest = useRef(props)
  latest.current = props
  const scheme = useScheme()
  const steps = useSteps(props, plot)
  const isolated = series.filter(({ name }) => name === only)
  const shown = isolated.length === 0 ? { series, outline } : { series: isolated, outline: undefined }
  const data: PlotData = { begins, endMs, whole, markers, ...shown }
  const kinds = [...shown.series, ...(shown.outline === undefined ? [] : [shown.outline])]
    .map(({ kind }) => kind)
    .join(' ')
  useEffect(() => {
    const element = frame.current
    if (element === null || isTable) return undefined
    const colourOf = (kind: string) => getComputedStyle(legend.current?.querySelector(`.${kind}`) ?? element).color
    const options: PlotOptions = {
      shape,
      zone,
      tick: (ms, isDay) => latest.current.tick(ms, isDay),
      onStep: steps.setAt,
      onSpan: onSpan && ((from, to) => latest.current.onSpan?.(from, to)),
    }
    const made = new Plot(element, colourOf, data, options)
    plot.current = made
    const watched = new ResizeObserver(() => made.resize(element))
    watched.observe(element)
    return () => {
      watched.disconnect()
      made.close()
    }
  }, [kinds, shape, zone, scheme, isTable, onSpan === undefined])
  useEffect(() => plot.current?.draw(data), [begins, series, outline, markers, only])
  return { frame, legend, plot, ...steps }
}

/** What each colour is; a click shows one series alone. */
function Legend(
  props: Pick<ChartProps, 'series' | 'outline' | 'markers'> & {
    readonly only: string | undefined
    readonly onOnly: (name: string | undefined) => void
    readonly legend: { readonly current: HTMLDivElement | null }
  },
) {
  const { series, outline, markers = [], only, onOnly, legend } = props
  return html`<div class="legend" ref=${legend}>
    ${series.map(({ name, kind }) => html`<button key=${name} class=${`bare ${only !== undefined && only !== name ? 'off' : ''}`} aria-pressed=${only === name} title=${`Only ${name}`} onClick=${() => onOnly(only === name ? undefined : name)}><span class=${`swatch ${kind}`} />${name}</button>`)}
    ${outline !== undefined && html`<span><span class=${`swatch ${outline.kind}`} />${outline.name}</span>`}
    ${[...new Set(markers.map(({ kind }) => kind))].map((kind) => html`<span key=${kind}><span class=${`swatch mark ${kind}`} />${markerNames[kind] ?? kind}</span>`)}
  </div>`
}

/**
 * Values over time: bars or lines, with what a step has at the cursor. Dragging chooses a span. Arrow keys walk along
 * it, with Shift they choose, Enter goes there; the values of a step are read out, and the same is a table on demand.
 */
export function Chart(props: ChartProps) {
  const { title, note, height = 240, onSpan } = props
  const [only, setOnly] = useState<string>()
  const [isTable, setTable] = useState(false)
  const { frame, legend, plot, at, leave, walk } = usePlot(props, only, isTable)
  const step = stepShown(props, at)
  const told =
    step === undefined
      ? ''
      : `${step.title}: ${step.values.map(({ name, text }) => `${text} ${name}`).join(', ')}${step.happened.map(({ name }) => `; ${name}`).join('')}`
  const left = at === undefined || isTable ? 0 : (plot.current?.leftOf(at) ?? 0)
  const help = `${title}. Arrow keys read its values${onSpan === undefined ? '' : '; with Shift they select a period, and Enter zooms in'}.`
  return html`<div class="stack chart-frame">
    <div class=${`drawn ${height < 150 ? 'low' : ''}`}>
      ${
        isTable
          ? html`<${ChartTable} ...${props} />`
          : html`<div class="chart" ref=${frame} tabindex="0" role="img" aria-label=${help} onBlur=${leave} onKeyDown=${walk} />`
      }
      ${step !== undefined && !isTable && html`<${Tooltip} step=${step} left=${left} isRight=${left > (frame.current?.clientWidth ?? 0) / 2} />`}
    </div>
    <div class="row apart under">
      <${Legend} ...${props} only=${only} onOnly=${setOnly} legend=${legend} />
      <span class="hidden" role="status">${told}</span>
      <button class="bare small as-table" aria-pressed=${isTable} onClick=${() => setTable(!isTable)}>${isTable ? 'Chart' : 'Table'}</button>
    </div>
    ${note !== undefined && html`<p class="quiet small">${note}</p>`}
  </div>`
}
