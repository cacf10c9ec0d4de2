import type { Impact } from '@weir/api/policy.ts'
import type { UtilizationRow } from '@weir/api/utilization.ts'
import { count, counted } from '@weir/core/format.ts'
import { useEffect, useRef, useState } from 'preact/hooks'
import { pathOf, type Refusal, type Settings, send, useAnswer } from '../api.ts'
import { short, tickLabel } from '../format.ts'
import { html } from '../html.ts'
import { zoneNow } from '../location.ts'
import { ApplySize } from './apply-size.ts'
import { niceMax, ticksOf } from './chart-scale.ts'
import { limitSentence } from './limit-sentence.ts'
import { Fault, Panel } from './panel.ts'
import { Table } from './table.ts'
import { Subject } from './words.ts'

const dayMs = 86_400_000
/** Customers that are decided again at once, and those that follow. */
const [firstMax, allMax] = [10, 100]
/** How long somebody has stopped moving the line before requests are decided again. */
const restMs = 250

type LimitImpact = Impact['limits'][number]
interface Told {
  readonly of: number
  readonly impact?: LimitImpact | undefined
  /** Whether those that follow are in it. */
  readonly isWhole?: boolean
  readonly isExact?: boolean
  readonly error?: Refusal
}

const nothing = { before: 0, after: 0, subjects: [], routes: [] }

/** Whom another size would touch most: below the size that there is by requests and the part of the peak beyond it. */
function mostTouched(rows: readonly UtilizationRow[], size: number, wanted: number): readonly string[] {
  const touched = ({ used, count: requests, refused }: UtilizationRow) =>
    wanted < size ? Number(requests) * Math.max(0, 1 - wanted / Number(used)) : Number(refused)
  return rows
    .toSorted((a, b) => touched(b) - touched(a))
    .map(({ subject }) => subject)
    .filter((one) => !one.startsWith('_'))
}

/** Decides the requests of those touched most again: ten at once, then the others. */
function useLimitImpact(
  name: string,
  settings: Settings['body'],
  wanted: number,
  rows: readonly UtilizationRow[],
): Told {
  const [told, setTold] = useState<Told>({ of: wanted })
  useEffect(() => {
    if (wanted === settings.size || rows.length === 0) return
    let isOver = false
    const subjects = mostTouched(rows, Number(settings.size), wanted)
    const ask = async (some: readonly string[]) => {
      const body = { settings: { ...settings, size: wanted }, subjects: some }
      const { exact, limits } = await send<Impact>('POST', `/v1/limits/${encodeURIComponent(name)}/impact`, body)
      return {
        exact,
        impact: limits.find(({ limit }) => limit === name) ?? { limit: name, edit: 'changed' as const, ...nothing },
      }
    }
    const run = async () => {
      const first = await ask(subjects.slice(0, firstMax))
      if (isOver) return
      const isWhole = subjects.length <= firstMax
      setTold({ of: wanted, impact: first.impact, isWhole, isExact: first.exact })
      if (isWhole) return
      const all = await ask(subjects.slice(0, allMax))
      if (!isOver) setTold({ of: wanted, impact: all.impact, isWhole: true, isExact: all.exact })
    }
    const timer = setTimeout(() => run().catch((error: Refusal) => !isOver && setTold({ of: wanted, error })), restMs)
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [name, wanted, rows])
  return told.of === wanted ? told : { of: wanted }
}

const [height, histogram] = [240, 130]
const edges = { top: 10, bottom: 22, left: 46, right: 10 }
const bins = 16

/** Each customer's peak by time, and how many had which peak; the limit is a line that can be moved. */
function Peaks(props: {
  readonly rows: readonly UtilizationRow[]
  readonly size: number
  readonly wanted: number
  readonly onSize: (size: number) => void
}) {
  const { rows, size, wanted, onSize } = props
  const drawing = useRef<SVGSVGElement>(null)
  const [isMoving, setMoving] = useState(false)
  const [width, setWidth] = useState(640)
  useEffect(() => {
    const watched = new ResizeObserver(([entry]) => setWidth(Math.max(300, entry?.contentRect.width ?? 0)))
    if (drawing.current !== null) watched.observe(drawing.current)
    return () => watched.disconnect()
  }, [])
  const max = niceMax(Math.max(Math.ceil(size * 1.25), wanted, ...rows.map(({ used }) => Number(used))))
  const [left, right] = [edges.left, width - histogram - edges.right]
  const toMs = Date.now()
  const x = (ms: number) => left + ((right - left) * (ms - toMs + 7 * dayMs)) / (7 * dayMs)
  const y = (value: number) => edges.top + (height - edges.top - edges.bottom) * (1 - value / max)
  const counts = Array<number>(bins).fill(0)
  for (const { used } of rows) {
    const bin = Math.min(bins - 1, Math.floor((Number(used) / max) * bins))
    counts[bin] = (counts[bin] ?? 0) + 1
  }
  const most = Math.max(1, ...counts)
  const move = (event: PointerEvent) => {
    const box = drawing.current?.getBoundingClientRect()
    if (!isMoving || box === undefined) return
    const at = ((event.clientY - box.top) / box.height) * height
    const share = 1 - (at - edges.top) / (height - edges.top - edges.bottom)
    const digits = 10 ** Math.max(0, Math.floor(Math.log10(max)) - 1)
    onSize(Math.max(1, Math.round((share * max) / digits) * digits))
  }
  const end = () => setMoving(false)
  return html`<svg class=${`peaks ${isMoving ? 'moving' : ''}`} ref=${drawing} height=${height} viewBox=${`0 0 ${width} ${height}`} role="img" aria-label=${`Peaks of ${counted(rows.length, 'customer')} in 7 days against a size of ${count(wanted)}`} onPointerMove=${move} onPointerUp=${end} onPointerLeave=${end}>
    ${ticksOf(max).map((value) => html`<g key=${value}><line class="axis" x1=${left} x2=${width - edges.right} y1=${y(value)} y2=${y(value)} /><text x=${left - 6} y=${y(value) + 4} text-anchor="end">${short(value)}</text></g>`)}
    ${[0, 2, 4, 6].map((day) => html`<text key=${day} x=${x(toMs - (7 - day) * dayMs)} y=${height - 6}>${tickLabel(toMs - (7 - day) * dayMs, true, zoneNow())}</text>`)}
    ${rows.map(({ subject, used, at }) => html`<circle key=${subject} class=${Number(used) > wanted ? 'over' : ''} cx=${x(Math.max(Date.parse(at), toMs - 7 * dayMs))} cy=${y(Number(used))} r="3.5"><title>${subject}: ${count(used)}</title></circle>`)}
    ${counts.map((many, at) => html`<rect key=${at} x=${right + 14} y=${y(((at + 1) * max) / bins) + 1} width=${((histogram - 20) * many) / most} height=${(height - edges.top - edges.bottom) / bins - 2}><title>${counted(many, 'customer')}</title></rect>`)}
    ${wanted !== size && html`<line class="was" x1=${left} x2=${width - edges.right} y1=${y(size)} y2=${y(size)} />`}
    <line class="limit" x1=${left} x2=${width - edges.right} y1=${y(wanted)} y2=${y(wanted)} />
    <line class="grip" x1=${left} x2=${width - edges.right} y1=${y(wanted)} y2=${y(wanted)} onPointerDown=${() => setMoving(true)}><title>Drag to try another size</title></line>
  </svg>`
}

/** What another size of a limit would have done to real requests, before it is applied. */
export function LimitLine({
  name,
  settings,
  again,
}: {
  readonly name: string
  readonly settings: Settings
  readonly again: () => void
}) {
  const size = Number(settings.body.size)
  const [wanted, setWanted] = useState(size)
  useEffect(() => setWanted(size), [size])
  const path = pathOf('/v1/utilization', { met_limit: name, from: 'now-7d', order: '-share', limit: '1000' })
  const asked = useAnswer<{ rows: readonly UtilizationRow[] }>(path)
  const rows = asked.data?.rows ?? []
  const told = useLimitImpact(name, settings.body, wanted, rows)
  const subjects = told.impact?.subjects ?? []
  const typed = (event: Event) => {
    const given = Math.round(Number((event.currentTarget as HTMLInputElement).value))
    // Nothing, while another size is being typed.
    if (given >= 1) setWanted(given)
  }
  const empty = ({ rows: all }: { rows: readonly UtilizationRow[] }) =>
    all.length === 0 ? 'No requests met this limit in 7 days.' : undefined
  return html`<${Panel} title="Peaks, last 7 days" asked=${asked} path=${path} rows=${8} empty=${empty}>
    ${() => html`<div class="stack">
      <${Peaks} rows=${rows} size=${size} wanted=${wanted} onSize=${setWanted} />
      <div class="row">
        <label class="row">Size <input type="number" min="1" step="1" value=${wanted} onInput=${typed} /></label>
        ${wanted !== size && html`<button onClick=${() => setWanted(size)}>Reset to ${count(size)}</button>`}
        <${ApplySize} name=${name} settings=${settings} size=${wanted} subjects=${subjects.map(({ subject }) => subject)} again=${again} />
      </div>
      ${told.error !== undefined && html`<${Fault} error=${told.error} />`}
      <p role="status">${
        wanted === size
          ? 'Type a size or drag the line to see whom it would refuse.'
          : told.impact === undefined
            ? told.error === undefined && 'Replaying…'
            : `${limitSentence(told.impact, wanted)}${told.isWhole === true ? '' : ' Still replaying…'}${told.isExact === false ? ' An estimate.' : ''}`
      }</p>
      ${
        subjects.length > 0 &&
        html`<${Table} caption="Customers" columns=${[
          {
            name: 'Subject',
            isPlain: true,
            cell: ({ subject }: { subject: string }) => html`<${Subject} id=${subject} />`,
          },
          { name: 'Refused', isNumber: true, cell: ({ before }: { before: number }) => count(before) },
          { name: `Refused at ${count(wanted)}`, isNumber: true, cell: ({ after }: { after: number }) => count(after) },
        ]} rows=${subjects.slice(0, firstMax)} keyOf=${({ subject }: { subject: string }) => subject} />`
      }
    </div>`}
  <//>`
}
