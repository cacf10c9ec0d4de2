import type { Alert, AlertWhole, Page } from '../answers.ts'
import { pathOf, send, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { describeAlert } from '../parts/describe-alert.ts'
import { Action, typed } from '../parts/dialog.ts'
import { Panel } from '../parts/panel.ts'
import { type Column, Pages, Table } from '../parts/table.ts'
import { Subject, Time } from '../parts/words.ts'
import { hrefOf, setParams, usePlace } from '../place.ts'
import { may } from '../session.ts'

const types = [
  ...['weir.quota.reached', 'weir.quota.forecast', 'weir.limit.blocked', 'weir.denied_rate.high', 'weir.allowed.high'],
  ...['weir.allowed.dropped', 'weir.budget.reached', 'weir.endpoint.disabled'],
]

const outcome = (name: string) => {
  const kind = { delivered: 'good', failed: 'refused', given_up: 'refused', dropped: 'refused' }[name] ?? 'degraded'
  const sign = { good: '✓', refused: '✕', degraded: '…' }[kind]
  return html`<span class=${`word ${kind}`}>${sign} ${name.replaceAll('_', ' ')}</span>`
}

const columns: readonly Column<Alert>[] = [
  { name: 'What', cell: (alert) => html`<a href=${hrefOf(`/alerts/${alert.id}`)}>${describeAlert(alert)}</a>` },
  { name: 'Time', cell: ({ time }) => html`<${Time} at=${time} />` },
  { name: 'Subject', cell: ({ subject }) => (subject.startsWith('_') ? '' : html`<${Subject} id=${subject} />`) },
  {
    name: 'Delivered',
    cell: ({ deliveries, state }) =>
      Object.keys(deliveries).length === 0
        ? html`<span class="quiet">${state === 'late' ? 'to nobody: its period was over' : 'to nobody'}</span>`
        : html`<div class="row">${Object.entries(deliveries).map(([name, what]) => html`<span key=${name}>${name} ${outcome(what)}</span>`)}</div>`,
  },
]

export function AlertsPage() {
  const { params } = usePlace()
  const after = params.get('after')
  const path = pathOf('/v1/alerts', {
    type: params.get('type') ?? '',
    subject: params.get('subject') ?? '',
    limit: '50',
    after: after ?? '',
  })
  const asked = useAnswer<Page<Alert>>(path, after === null ? 5_000 : undefined)
  const change = (name: string) => (event: Event) => setParams({ [name]: typed(event).trim(), after: undefined })
  return html`
    <div class="head">
      <h1>Alerts</h1>
      <div class="row">
        <select aria-label="Type" value=${params.get('type') ?? ''} onChange=${change('type')}>
          <option value="">every type</option>${types.map((type) => html`<option value=${type}>${type}</option>`)}
        </select>
        <input aria-label="Subject" placeholder="subject" value=${params.get('subject') ?? ''} onChange=${change('subject')} />
      </div>
    </div>
    <${Panel} title="What was told" asked=${asked} path=${path} rows=${10} empty=${({ items }: Page<Alert>) => (items.length === 0 ? 'No alert was raised.' : undefined)}>
      ${({ items, next }: Page<Alert>) => html`<div class="stack">
        <${Table} caption="Alerts" columns=${columns} rows=${items} keyOf=${({ id }: Alert) => id} />
        <${Pages} after=${after} next=${next} onPage=${(page: string | undefined) => setParams({ after: page })} />
      </div>`}
    <//>
  `
}

type Step = AlertWhole['deliveries'][number]

const stepColumns: readonly Column<Step>[] = [
  { name: 'Endpoint', cell: ({ endpoint }) => endpoint },
  { name: 'Try', isNumber: true, cell: ({ attempt }) => attempt },
  { name: 'When', cell: ({ at }) => html`<${Time} at=${at} />` },
  { name: 'Outcome', cell: ({ outcome: what }) => outcome(what) },
  { name: 'Status', isNumber: true, cell: ({ status }) => (status === 0 ? '–' : status) },
  { name: 'ms', isNumber: true, cell: ({ ms }) => ms },
  { name: 'They said', cell: ({ error, answer }) => html`${error} ${answer && html`<code>${answer}</code>`}` },
]

/** One alert: what it says, and every step of telling it. */
export function AlertPage({ id }: { readonly id: string }) {
  const path = `/v1/alerts/${encodeURIComponent(id)}`
  const asked = useAnswer<AlertWhole>(path, 5_000)
  const again = async () => {
    const { requested } = await send<{ requested: number }>('POST', `${path}/redeliver`, {})
    asked.again()
    return html`<p>Asked for ${requested} deliveries. They come under the same id: who has it already ignores it.</p>`
  }
  return html`
    <div class="head">
      <h1>${asked.data === undefined ? 'Alert' : describeAlert({ ...asked.data })}</h1>
      <${Action} label="Send again" isDisabled=${!may('write')} about="It is delivered again to every endpoint that it was sent to, under the same id." run=${again} />
    </div>
    <${Panel} title="What it says" asked=${asked} path=${path}>
      ${(data: AlertWhole) => html`<dl class="facts">
        <dt>Type</dt><dd>${data.type}</dd>
        <dt>Subject</dt><dd><${Subject} id=${data.subject} /></dd>
        <dt>Raised</dt><dd><${Time} at=${data.time} isLong /></dd>
        ${Object.entries(data.data).map(
          ([name, value]) =>
            html`<dt>${name.replaceAll('_', ' ')}</dt><dd>${
              name === 'decision_id'
                ? html`<a href=${hrefOf(`/decisions/${String(value)}`)}>${String(value)}</a>`
                : typeof value === 'object'
                  ? JSON.stringify(value)
                  : String(value)
            }</dd>`,
        )}
      </dl>`}
    <//>
    ${
      asked.data !== undefined &&
      html`<section class="panel"><header><h2>Deliveries</h2></header>
        ${asked.data.deliveries.length === 0 ? html`<p class="empty">It was sent to nobody.</p>` : html`<${Table} caption="Deliveries" columns=${stepColumns} rows=${asked.data.deliveries} keyOf=${(step: Step, at: number) => `${step.endpoint} ${at}`} />`}
      </section>`
    }
  `
}
