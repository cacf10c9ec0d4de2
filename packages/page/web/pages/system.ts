import type { Status } from '@weir/api/status.ts'
import { count, percent } from '@weir/core/format.ts'
import { useAnswer } from '../api.ts'
import { ago } from '../format.ts'
import { html } from '../html.ts'
import { hrefOf } from '../location.ts'
import { Panel } from '../parts/panel.ts'
import { type Column, Table } from '../parts/table.ts'
import { Time } from '../parts/words.ts'
import { notDeliveredHref } from './alerts.ts'

type Process = Status['processes'][number]

/** A share as percents, any other number as a count. */
const textOf = (metric: string, value: unknown) =>
  typeof value !== 'number' ? String(value) : metric.endsWith('_ratio') ? percent(value, 1) : count(Math.round(value))

const columns: readonly Column<Process>[] = [
  { name: 'Process', isPlain: true, cell: ({ name }) => html`<b>${name}</b>` },
  {
    name: 'State',
    isPlain: true,
    cell: ({ ready }) =>
      ready ? html`<span class="word good">✓ ready</span>` : html`<span class="word refused">✕ not ready</span>`,
  },
  { name: 'Details', isPlain: true, cell: ({ said }) => said.map((one) => html`<div key=${one}>${one}</div>`) },
  {
    name: 'Metrics',
    isPlain: true,
    cell: ({ metrics }) =>
      html`<ul class="metrics small">${Object.entries(metrics).map(
        ([name, value]) =>
          html`<li key=${name}>${name
            .replace(/^weir_/, '')
            .replace(/_(?:total|ratio)(?=\{|$)/, '')
            .replace(/\{\w+="([^"]*)"\}$/, ' $1')
            .replaceAll('_', ' ')} <b>${textOf(name, value)}</b></li>`,
      )}</ul>`,
  },
]

/** How Weir itself is. */
export function SystemPage() {
  const asked = useAnswer<Status>('/v1/status', 5_000)
  return html`
    <h1>System</h1>
    <${Panel} title="Pipeline" asked=${asked} path="/v1/status">
      ${(data: Status) => html`<div class="stack">
        ${data.look.map((one) => html`<div class="fault" key=${one}>${one}</div>`)}
        ${data.warnings.map((one) => html`<div class="note" key=${one}>${one}</div>`)}
        <dl class="facts">
          <dt>Counted until</dt><dd>${data.complete_through === null ? 'nothing yet' : html`<${Time} at=${data.complete_through} /> <span class="quiet">${ago(Date.parse(data.complete_through))}</span>`}</dd>
          <dt>Silent journals</dt><dd>${data.silent.length === 0 ? 'none' : data.silent.map(({ journal, since }) => html`<div key=${journal}><code>${journal}</code> since <${Time} at=${since} /></div>`)}</dd>
          <dt>Gaps, 24 hours</dt><dd>${data.gaps === null ? 'unknown' : data.gaps.length === 0 ? 'none' : data.gaps.map(({ cause, topic, count: lost }) => html`<div key=${`${cause} ${topic}`}>${cause}: ${count(lost)} of ${topic}</div>`)}</dd>
          <dt>Abandoned deliveries, last 24 hours</dt><dd>${data.failed_deliveries === null ? 'unknown' : data.failed_deliveries.length === 0 ? 'none' : data.failed_deliveries.map(({ endpoint, count: failed }) => html`<div key=${endpoint}><a href=${notDeliveredHref(endpoint, '24h')}>${endpoint}: ${failed}</a></div>`)}</dd>
          <dt>Redis</dt><dd>${data.redis ?? 'answers'}</dd>
          <dt>Policy</dt><dd>${data.policy === null ? 'none yet' : html`<a href=${hrefOf(`/changes/${data.policy.change}`)}>changed</a> by ${data.policy.by}, <${Time} at=${data.policy.at} />`}</dd>
        </dl>
      </div>`}
    <//>
    ${
      asked.data !== undefined &&
      html`<section class="panel"><header><h2>Processes</h2></header>
        ${asked.data.processes.length === 0 ? html`<p class="empty">Set <code>WEIR_STATUS_URLS</code> to the ops URLs of your processes to list them here.</p>` : html`<${Table} caption="Processes" columns=${columns} rows=${asked.data.processes} keyOf=${({ url }: Process) => url} />`}
      </section>`
    }
  `
}
