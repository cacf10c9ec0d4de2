import uPlot from 'uplot'
import { short } from '../format.ts'
import { highest, niceMax, type Series, stacked, stepAt, ticksOf, type WholeSteps } from './chart-scale.ts'

/** Something that happened, drawn as an upright line. */
export interface Marker {
  readonly ms: number
  readonly name: string
  readonly kind: string
}

/** What is drawn, and what the reader does with it. */
export interface PlotOptions {
  /** Bars are stacked, and begin where their step does. */
  readonly shape: 'bars' | 'lines'
  readonly zone: string
  /** The text below the axis; `isDay`: ticks are days apart. */
  readonly tick: (ms: number, isDay: boolean) => string
  readonly onStep: (at: number | undefined) => void
  /** Undefined: nothing is chosen by dragging. */
  readonly onSpan: ((fromMs: number, toMs: number) => void) | undefined
}

export interface PlotData {
  /** When each step begins, milliseconds since 1970. */
  readonly begins: readonly number[]
  readonly endMs: number
  readonly series: readonly Series[]
  /** An outline over the bars, which is not stacked. */
  readonly outline: Series | undefined
  readonly whole: WholeSteps
  readonly markers: readonly Marker[]
}

const dayMs = 86_400_000
/** Texts below the axis need so much room. */
const tickPx = 72
const dashes: Readonly<Record<string, number[]>> = { refused: [6, 3], g2: [8, 3], g3: [2, 3] }

/** Diagonal lines: what is not told by colour alone. */
function hatch(ctx: CanvasRenderingContext2D, colour: string, isDense: boolean): CanvasPattern | string {
  const size = (isDense ? 5 : 8) * devicePixelRatio
  const tile = new OffscreenCanvas(size, size)
  const pen = tile.getContext('2d')
  if (pen === null) return colour
  pen.strokeStyle = colour
  pen.globalAlpha = isDense ? 1 : 0.6
  pen.lineWidth = (isDense ? 2.4 : 1.4) * devicePixelRatio
  for (const at of [-size, 0, size]) {
    pen.moveTo(at - 1, size + 1)
    pen.lineTo(at + size + 1, -1)
  }
  pen.stroke()
  return ctx.createPattern(tile, 'repeat') ?? colour
}

/** The columns of uPlot's data: of each series its whole steps, and those that are not. */
function columnsOf({ begins, series, outline, whole: [from, to] }: PlotData, isBars: boolean): uPlot.AlignedData {
  const lines = isBars ? stacked(series).toReversed() : series.map(({ values }) => values)
  // A dashed line goes on where the whole one ends.
  const joint = isBars ? 0 : 1
  const isRest = (at: number) => at < from + (from > 0 ? joint : 0) || at >= to - joint
  const columns = lines.flatMap((values) => [
    values.map((value, at) => (at >= from && at < to ? value : null)),
    values.map((value, at) => (isRest(at) ? value : null)),
  ])
  return [[...begins], ...columns, ...(outline === undefined ? [] : [[...outline.values]])]
}

/** How each column is drawn, in the order of `columnsOf`. */
function seriesOf(data: PlotData, isBars: boolean, colourOf: (kind: string) => string): uPlot.Series[] {
  const ctx = document.createElement('canvas').getContext('2d') as CanvasRenderingContext2D
  const paths = isBars ? uPlot.paths.bars?.({ align: 1, size: [0.85, 60], gap: 1 }) : undefined
  const hidden = { points: { show: false }, ...(paths === undefined ? {} : { paths }) }
  const pairs = data.series.map(({ kind }): uPlot.Series[] => {
    const stroke = colourOf(kind)
    const isRefused = kind === 'refused'
    if (isBars) {
      return [
        { ...hidden, stroke, width: isRefused ? 1 : 0, fill: isRefused ? hatch(ctx, stroke, true) : stroke },
        { ...hidden, stroke, width: 1, dash: [3, 3], fill: hatch(ctx, stroke, false) },
      ]
    }
    const dash = dashes[kind]
    const area = kind === 'allowed' ? { fill: fade(stroke) } : {}
    return [
      { stroke, width: 2, ...(dash === undefined ? {} : { dash }), ...area },
      { ...hidden, stroke, width: 2, dash: [3, 4] },
    ]
  })
  const ordered = isBars ? pairs.toReversed() : pairs
  if (data.outline === undefined) return ordered.flat()
  const stepped = isBars ? uPlot.paths.stepped?.({ align: 1 }) : undefined
  const outline = { stroke: colourOf('before'), width: 1.5, dash: [2, 3], points: { show: false } }
  return [...ordered.flat(), { ...outline, ...(stepped === undefined ? {} : { paths: stepped }) }]
}

/** A chart in `frame`, whose size it takes. Colours are those of the legend and the frame when it is made. */
export class Plot {
  readonly #plot: uPlot
  readonly #options: PlotOptions
  #data: PlotData

  constructor(frame: HTMLElement, colourOf: (kind: string) => string, data: PlotData, options: PlotOptions) {
    this.#options = options
    this.#data = data
    const isBars = options.shape === 'bars'
    const { color: quiet, borderTopColor: line } = getComputedStyle(frame)
    const text = { font: '11px system-ui, sans-serif', stroke: quiet }
    this.#plot = new uPlot(
      {
        ...this.#size(frame),
        ms: 1,
        tzDate: (ms) => uPlot.tzDate(new Date(ms), options.zone),
        legend: { show: false },
        cursor: {
          y: false,
          drag: { x: options.onSpan !== undefined, y: false, setScale: false, dist: 4 },
          points: { show: !isBars, size: 7 },
          dataIdx: (self, _, at) =>
            isBars ? stepAt(self.data[0] as number[], self.posToVal(self.cursor.left ?? 0, 'x')) : at,
        },
        scales: {
          x: {
            time: true,
            range: () => [this.#data.begins[0] ?? 0, isBars ? this.#data.endMs : (this.#data.begins.at(-1) ?? 1)],
          },
          y: { range: () => [0, this.#max()] },
        },
        axes: [
          {
            ...text,
            space: tickPx,
            size: 26,
            gap: 4,
            grid: { show: false },
            ticks: { stroke: line, width: 1, size: 4 },
            values: (_, splits, __, ___, apartMs) => splits.map((ms) => options.tick(ms, apartMs >= dayMs)),
          },
          {
            ...text,
            size: 46,
            gap: 6,
            splits: () => ticksOf(this.#max()),
            values: (_, splits) => splits.map(short),
            grid: { stroke: line, width: 1 },
            ticks: { show: false },
          },
        ],
        series: [{}, ...seriesOf(data, isBars, colourOf)],
        hooks: {
          setCursor: [
            ({ cursor }) =>
              options.onStep((cursor.left ?? -1) < 0 ? undefined : (cursor.idxs?.[1] ?? cursor.idx ?? undefined)),
          ],
          setSelect: [({ select }) => select.width > 0 && this.#chosen(select.left, select.left + select.width)],
          draw: [(self) => this.#drawMarkers(self, colourOf)],
        },
      },
      columnsOf(data, isBars),
      frame,
    )
  }

  #size(frame: HTMLElement) {
    return { width: Math.max(200, frame.clientWidth), height: Math.max(80, frame.clientHeight) }
  }

  #max(): number {
    const { series, outline, whole } = this.#data
    const lines = this.#options.shape === 'bars' ? stacked(series) : series.map(({ values }) => values)
    return niceMax(highest([...lines, ...(outline === undefined ? [] : [outline.values])], whole))
  }

  /** Draws other values of the same series. */
  draw(data: PlotData): void {
    this.#data = data
    this.#plot.setData(columnsOf(data, this.#options.shape === 'bars'))
  }

  resize(frame: HTMLElement): void {
    this.#plot.setSize(this.#size(frame))
  }

  /** Where a step is across the frame, in pixels. */
  leftOf(at: number): number {
    const { begins, endMs } = this.#data
    const isBars = this.#options.shape === 'bars'
    const begin = begins[at] ?? 0
    const middle = isBars ? (begin + (begins[at + 1] ?? endMs)) / 2 : begin
    return this.#plot.valToPos(middle, 'x') + this.#plot.over.offsetLeft
  }

  /** Puts the cursor at a step, as the keyboard does; undefined takes it away. */
  point(at: number | undefined): void {
    const left = at === undefined ? -10 : this.leftOf(at) - this.#plot.over.offsetLeft
    this.#plot.setCursor({ left, top: at === undefined ? -10 : 0 })
  }

  /** Shows steps as chosen; undefined for none. */
  choose(steps: readonly [first: number, last: number] | undefined): void {
    const { height } = this.#plot.over.getBoundingClientRect()
    const [left, right] = steps === undefined ? [0, 0] : steps.map((at) => this.#plot.valToPos(this.#beginOf(at), 'x'))
    this.#plot.setSelect({ left: left ?? 0, top: 0, width: (right ?? 0) - (left ?? 0), height }, false)
  }

  #beginOf(at: number): number {
    return this.#data.begins[at] ?? this.#data.endMs
  }

  /** The whole steps that somebody dragged over. */
  #chosen(left: number, right: number): void {
    const [first, last] = [left, right].map((px) => stepAt(this.#data.begins, this.#plot.posToVal(px, 'x')))
    this.choose(undefined)
    this.#options.onSpan?.(this.#beginOf(first ?? 0), this.#beginOf((last ?? 0) + 1))
  }

  #drawMarkers({ ctx, bbox, valToPos }: uPlot, colourOf: (kind: string) => string): void {
    ctx.save()
    for (const { ms, kind } of this.#data.markers) {
      const x = Math.round(valToPos(ms, 'x', true))
      if (x < bbox.left || x > bbox.left + bbox.width) continue
      ctx.strokeStyle = colourOf(kind)
      ctx.fillStyle = ctx.strokeStyle
      ctx.lineWidth = devicePixelRatio
      ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio])
      ctx.beginPath()
      ctx.moveTo(x, bbox.top)
      ctx.lineTo(x, bbox.top + bbox.height)
      ctx.stroke()
      const half = 4 * devicePixelRatio
      ctx.beginPath()
      ctx.moveTo(x - half, bbox.top - half)
      ctx.lineTo(x + half, bbox.top - half)
      ctx.lineTo(x, bbox.top + half)
      ctx.fill()
    }
    ctx.restore()
  }

  close(): void {
    this.#plot.destroy()
  }
}

/** A tenth of a colour, below a line. */
const fade = (colour: string) => `color-mix(in srgb, ${colour} 10%, transparent)`
