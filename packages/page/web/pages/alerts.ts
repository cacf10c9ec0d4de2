import { useState } from 'preact/hooks'
import type { Alert, Page } from '../answers.ts'
import { pathOf, send, useAnswer } from '../api.ts'
import { counted } from '../format.ts'
import { html } from '../html.ts'
import { Action } from '../parts/dialog.ts'
import { Field } from '../parts/field.ts'
import { Panel } from '../parts/panel.ts'
import { type Column, PagedTable } from '../parts/table.ts'
import { Tabs } from '../parts/tabs.ts'
import { Subject, Time } from '../parts/words.ts'
import { hrefOf, setParams, usePlace } from '../place.ts'
import { needs } from '../session.ts'

export const alertTabs = { '/alerts': 'Alerts', '/endpoints': 'Endpoints and silences' }
export const alertTypes = [
  ...['weir.quota.reached', 'weir.quota.forecast', 'weir.limit.blocked', 'weir.denied_rate.high', 'weir.allowed.high'],
  ...['weir.allowed.dropped', 'weir.budget.reached', 'weir.endpoint.disabled'],
]

/** How a delivery went. */
export const outcome = (name: string) => {
  const kind = { delivered: 'good', failed: 'refused', given_up: 'refused', dropped: 'refused' }[name] ?? 'degraded'
  const sign = { good: '✓', refused: '✕', degraded: '…' }[kind]
  return html`<span class=${`word ${kind}`}>${sign} ${name.replaceAll('_', ' ')}</span>`
}

const failedOutcomes = ['failed', 'given_up', 'dropped']
/** Whether a delivery has not arrived. */
export const isFailed = (outcome: string) => failedOutcomes.includes(outcome)

/** What one looks for among deliveries, by the outcomes that the API is asked for. */
const outcomeChoices = {
  ...{ '': 'delivered or not', [failedOutcomes.join(',')]: 'not delivered', failed: 'failed, tried again' },
  ...{ given_up: 'given up', dropped: 'dropped', delivered: 'delivered', silenced: 'silenced' },
}
/** The alerts that did not arrive at an endpoint. */
export const notDeliveredHref = () => hrefOf('/alerts', { outcome: failedOutcomes.join(',') })

export const isSubject = (subject: string) => subject !== '' && !subject.startsWith('_')

const columns: readonly Column<Alert>[] = [
  {
    name: 'What',
    isPlain: true,
    cell: (alert) => html`<a href=${hrefOf(`/alerts/${alert.id}`)}>${alert.summary}</a>`,
  },
  { name: 'When', isPlain: true, cell: ({ time }) => html`<${Time} at=${time} />` },
  { name: 'Subject', isMinor: true, cell: ({ subject }) => isSubject(subject) && html`<${Subject} id=${subject} />` },
  {
    ...{ name: 'Delivered', isPlain: true },
    cell: ({ deliveries, state }) =>
      Object.keys(deliveries).length === 0
        ? html`<span class="quiet">${state === 'late' ? 'to no endpoint: its period was over' : 'to no endpoint'}</span>`
        : html`<div class="row">${Object.entries(deliveries).map(([name, what]) => html`<span key=${name}>${name} ${outcome(what)}</span>`)}</div>`,
  },
]

/** Sends again what was given up or dropped. */
function RedeliverFailed() {
  const [from, setFrom] = useState('now-24h')
  const spans = { 'now-1h': 'an hour', 'now-24h': '24 hours', 'now-168h': 'a week' }
  const run = async () => {
    const hours = Number(/\d+/.exec(from)?.[0] ?? 24)
    const since = new Date(Date.now() - hours * 3_600_000).toISOString()
    const { requested } = await send<{ requested: number }>('POST', '/v1/deliveries/redeliver', { from: since })
    return html`<p>Asked for ${counted(requested, 'delivery', 'deliveries')}.</p>`
  }
  const about = html`<p>All that was given up or dropped is delivered once more, under the same ids: a receiver that has it ignores it.</p>
    <${Field} label="Of the last" options=${spans} value=${from} onValue=${setFrom} />`
  return html`<${Action} label="Send failed ones again" ...${needs('write')} about=${about} run=${run} />`
}

export function AlertsPage() {
  const { params } = usePlace()
  const after = params.get('after')
  const [type, subject, what] = ['type', 'subject', 'outcome'].map((name) => params.get(name) ?? '')
  const path = pathOf('/v1/alerts', { type, subject, outcome: what?.split(','), limit: '50', after: after ?? '' })
  const asked = useAnswer<Page<Alert>>(path, after === null ? 5_000 : undefined)
  const set = (name: string) => (value: string) => setParams({ [name]: value, after: undefined })
  const types = { '': 'every type', ...Object.fromEntries(alertTypes.map((one) => [one, one])) }
  return html`
    <div class="head"><h1>Alerts</h1><${RedeliverFailed} /></div>
    <${Tabs} of=${alertTabs} label="Alerts" />
    <div class="row">
      <${Field} isTool label="Type" options=${types} value=${type} onValue=${set('type')} />
      <${Field} isTool label="Deliveries" options=${outcomeChoices} value=${what} onValue=${set('outcome')} />
      <${Field} isTool label="Subject" on="change" suggest="subject" value=${subject} onValue=${set('subject')} />
    </div>
    <${Panel} title="What was told" asked=${asked} path=${path} rows=${14} empty=${({ items }: Page<Alert>) => (items.length > 0 ? undefined : `No alert ${path.includes('subject=') || path.includes('type=') || path.includes('outcome=') ? 'of this kind ' : ''}was raised in the last 7 days.`)}>
      ${({ items, next }: Page<Alert>) => html`<${PagedTable} caption="Alerts" columns=${columns} rows=${items} next=${next} keyOf=${({ id }: Alert) => id} />`}
    <//>
  `
}
