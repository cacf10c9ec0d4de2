import { useEffect, useRef, useState } from 'preact/hooks'
import type { DecisionRow } from '../answers.ts'
import { pathOf } from '../api.ts'
import { count } from '../format.ts'
import { html } from '../html.ts'
import { Chart } from '../parts/chart.ts'
import { Table } from '../parts/table.ts'
import { setParams, usePlace } from '../place.ts'
import { decisionColumns } from './decisions.ts'

/** Seconds that the chart shows. */
const secondsShown = 120
/** Lines of the tail: more than anybody reads of what goes by. */
const linesMax = 100

interface Second {
  readonly label: string
  readonly allowed: number
  readonly denied: number
}

interface Seen {
  readonly seconds: readonly Second[]
  readonly lines: readonly DecisionRow[]
  readonly dropped: number
  readonly gaps: number
  /** Since when there is no connection; undefined while there is one. */
  readonly lostAtMs: number | undefined
}

const nothing: Seen = { seconds: [], lines: [], dropped: 0, gaps: 0, lostAtMs: Date.now() }

const secondOf = (text: string): Second => {
  const { ts, rows } = JSON.parse(text) as { ts: string; rows: { outcome: string; count: number }[] }
  const sum = (outcome: string) => rows.reduce((all, row) => all + (row.outcome === outcome ? row.count : 0), 0)
  return { label: ts.slice(11, 19), allowed: sum('allow'), denied: sum('deny') }
}

/** What the stream says, drawn at most once a frame; while it is paused, what comes is not kept. */
function useStream(path: string, isPaused: boolean): Seen {
  const [seen, setSeen] = useState(nothing)
  const paused = useRef(isPaused)
  paused.current = isPaused
  useEffect(() => {
    let now: Seen = nothing
    let isDue = false
    const update = (change: Partial<Seen>) => {
      now = { ...now, ...change }
      if (isDue || paused.current) return
      isDue = true
      requestAnimationFrame(() => {
        isDue = false
        setSeen(now)
      })
    }
    const source = new EventSource(path)
    source.onopen = () => update({ lostAtMs: undefined })
    source.onerror = () => update({ lostAtMs: now.lostAtMs ?? Date.now() })
    const on = (name: string, take: (data: string) => void) =>
      source.addEventListener(name, (event) => take((event as MessageEvent<string>).data))
    on('decision', (data) => {
      if (!paused.current) update({ lines: [JSON.parse(data) as DecisionRow, ...now.lines].slice(0, linesMax) })
    })
    on('sums', (data) => update({ seconds: [...now.seconds, secondOf(data)].slice(-secondsShown) }))
    on('dropped', (data) => update({ dropped: now.dropped + (JSON.parse(data) as { count: number }).count }))
    on('gap', () => update({ gaps: now.gaps + 1 }))
    return () => source.close()
  }, [path])
  return seen
}

export function LivePage() {
  const { params } = usePlace()
  const [isPaused, setPaused] = useState(false)
  const filters = {
    subject: params.getAll('subject'),
    outcome: params.getAll('outcome'),
    denied_by: params.getAll('denied_by'),
  }
  const path = pathOf('/v1/decisions/stream', filters)
  const { seconds, lines, dropped, gaps, lostAtMs } = useStream(path, isPaused)
  const change = (name: string) => (event: Event) =>
    setParams({ [name]: (event.currentTarget as HTMLInputElement).value.trim() })
  const last = seconds.at(-1)
  return html`
    <div class="head">
      <h1>Live</h1>
      <div class="row">
        <select aria-label="Which" value=${params.get('outcome') ?? ''} onChange=${change('outcome')}>
          <option value="">all</option><option value="deny">refused</option><option value="allow">allowed</option>
        </select>
        <input aria-label="Subject" placeholder="subject" value=${params.get('subject') ?? ''} onChange=${change('subject')} />
        <button onClick=${() => setPaused(!isPaused)}>${isPaused ? 'Go on' : 'Pause'}</button>
      </div>
    </div>
    ${lostAtMs !== undefined && html`<p class="note" role="status">Connecting to the stream…</p>`}
    <section class="panel" aria-label="Decisions a second">
      <header>
        <h2>Decisions a second</h2>
        <div class="row small quiet">
          ${last !== undefined && html`<span>${count(last.allowed)} allowed, ${count(last.denied)} refused</span>`}
          ${dropped > 0 && html`<span>${count(dropped)} not listed: more than 200 a second</span>`}
          ${gaps > 0 && html`<span class="word refused">${gaps} gaps</span>`}
        </div>
      </header>
      <${Chart}
        title="Decisions a second"
        labels=${seconds.map(({ label }) => label)}
        series=${[
          { name: 'allowed', kind: 'allowed', values: seconds.map(({ allowed }) => allowed) },
          { name: 'refused', kind: 'refused', values: seconds.map(({ denied }) => denied) },
        ]}
      />
    </section>
    <section class="panel" aria-label="The last decisions">
      <header><h2>The last decisions</h2></header>
      ${lines.length === 0 ? html`<p class="empty">Waiting for the next decision.</p>` : html`<${Table} caption="The last decisions" columns=${decisionColumns} rows=${lines} keyOf=${({ id }: DecisionRow) => id} />`}
    </section>
  `
}
