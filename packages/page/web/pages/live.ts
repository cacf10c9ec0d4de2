import type { ListedDecision } from '@weir/api/decisions.ts'
import { count } from '@weir/core/format.ts'
import { useState } from 'preact/hooks'
import { pathOf } from '../api.ts'
import { html } from '../html.ts'
import { useLocation } from '../location.ts'
import { Chart } from '../parts/chart.ts'
import { Filters, filtersOf } from '../parts/filters.ts'
import { liveChart, useLiveSeconds } from '../parts/live-seconds.ts'
import { Lost } from '../parts/lost.ts'
import { CopyCommand } from '../parts/panel.ts'
import { Table } from '../parts/table.ts'
import { decisionColumns } from './decisions.ts'

/** An upstream answers later than a decision is made. */
const liveColumns = decisionColumns.filter(({ name }) => name !== 'Status')

const filters = ['outcome', 'subject', 'denied_by', 'route', 'key_id', 'plan', 'ip'] as const

/** Decisions as they are made. */
export function LivePage() {
  const { params } = useLocation()
  const [isPaused, setPaused] = useState(false)
  const path = pathOf('/v1/decisions/stream', filtersOf(params, filters))
  const seen = useLiveSeconds(path, isPaused)
  const { seconds, lines, dropped, gaps, connection } = seen
  const last = seconds.at(-1)
  return html`
    <div class="head">
      <h1>Live</h1>
      <button onClick=${() => setPaused(!isPaused)} aria-pressed=${isPaused}>${isPaused ? '▶ Resume' : '❚❚ Pause'}</button>
    </div>
    <${Filters} names=${filters} />
    <${Lost} connection=${connection} />
    <section class="panel" aria-label="Decisions per second">
      <header>
        <h2>Decisions per second</h2>
        <div class="row small quiet">
          ${dropped > 0 && html`<span>${count(dropped)} not listed: more than 200 per second</span>`}
          ${gaps > 0 && html`<span class="word refused">✕ ${count(gaps)} gaps</span>`}
          <${CopyCommand} path=${path} />
        </div>
      </header>
      <div class="stack">
        <div class="figures">
          <span class="figure"><b>${count(last?.allowed ?? null)}</b>allowed/s</span>
          <span class="figure"><b>${count(last?.denied ?? null)}</b>refused/s</span>
        </div>
        <${Chart} title="Decisions per second" ...${liveChart(seen)} />
      </div>
    </section>
    <section class="panel" aria-label="Latest decisions">
      <header><h2>Latest decisions${isPaused && ', paused'}</h2></header>
      ${lines.length === 0 ? html`<p class="empty">Waiting for decisions.</p>` : html`<${Table} caption="Latest decisions" columns=${liveColumns} rows=${lines} keyOf=${({ id }: ListedDecision) => id} />`}
    </section>
  `
}
