import type { ListedAlert } from '@weir/api/alerts.ts'
import type { Entity } from '@weir/api/policy.ts'
import type { Page } from '@weir/api/schema.ts'
import { alertTypes } from '@weir/core/alerts/alert-types.ts'
import { counted } from '@weir/core/format.ts'
import { useState } from 'preact/hooks'
import { pathOf, send, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf, setParams, useLocation } from '../location.ts'
import { Action } from '../parts/dialog.ts'
import { Field } from '../parts/field.ts'
import { NothingHere, useSpan } from '../parts/span.ts'
import { actionsOf, type Column, ListPanel } from '../parts/table.ts'
import { Tabs } from '../parts/tabs.ts'
import { Subject, Time } from '../parts/words.ts'
import { may } from '../session.ts'

export const alertTabs = { '/alerts': 'Alerts', '/endpoints': 'Endpoints and silences' }
/** The types of alerts as a person reads them: `limit blocked` for `weir.limit.blocked`. */
export const alertTypeNames: Readonly<Record<string, string>> = Object.fromEntries(
  alertTypes.map((one) => [one, one.replace('weir.', '').replace(/[._]/g, ' ')]),
)

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
  '': 'any outcome',
  [failedOutcomes.join(',')]: 'not delivered',
  failed: 'failed, retrying',
  given_up: 'given up',
  dropped: 'dropped',
  delivered: 'delivered',
  silenced: 'silenced',
}
/** The alerts that did not arrive, at this endpoint or anywhere, in the chosen span or another one. */
export const notDeliveredHref = (endpoint = '', span = '') =>
  hrefOf('/alerts', { outcome: failedOutcomes.join(','), endpoint, span })

export const isSubject = (subject: string) => subject !== '' && !subject.startsWith('_')

/** Whether a delivery is one to this endpoint: of a contact to any of its addresses. */
const isAt = (endpoint: string) => (name: string) =>
  endpoint === '' || name === endpoint || name.startsWith(`${endpoint}/`)

/** The columns of a list of alerts; of deliveries those to one endpoint, if only these are asked for. */
const columnsFor = (endpoint: string): readonly Column<ListedAlert>[] => [
  { name: 'What', isPlain: true, cell: (alert) => html`<a href=${hrefOf(`/alerts/${alert.id}`)}>${alert.summary}</a>` },
  { name: 'When', isPlain: true, cell: ({ time }) => html`<${Time} at=${time} />` },
  { name: 'Subject', isMinor: true, cell: ({ subject }) => isSubject(subject) && html`<${Subject} id=${subject} />` },
  {
    name: 'Delivered',
    isPlain: true,
    cell: ({ deliveries, state }) =>
      Object.keys(deliveries).length === 0
        ? html`<span class="quiet">${state === 'late' ? 'not sent: its period was over' : 'not sent'}</span>`
        : html`<div class="row">${Object.entries(deliveries)
            .filter(([name]) => isAt(endpoint)(name))
            .map(([name, what]) => html`<span key=${name}>${name} ${outcome(what)}</span>`)}</div>`,
  },
  ...(may('write') ? [actionsOf<ListedAlert>((alert) => html`<${Silence} alert=${alert} />`)] : []),
]

/** Keeps alerts like one from every endpoint for a while. */
function Silence({ alert: { subject, type } }: { readonly alert: ListedAlert }) {
  const [length, setLength] = useState('2h')
  const lengths = { '2h': '2 hours', '24h': 'a day', '168h': 'a week' }
  const body = { types: [type], ...(subject === '' ? {} : { subjects: [subject] }), for: length }
  const about = html`<p>Alerts of type <b>${alertTypeNames[type] ?? type}</b>${subject !== '' && ` about ${subject}`} are listed but not sent.</p>
    <${Field} label="For" options=${lengths} value=${length} onValue=${setLength} />`
  return html`<${Action} label="Silence" scope="write" about=${about} run=${() => send('POST', '/v1/silences', body)} />`
}

/** How many deliveries were asked for. */
export const saidAsked = ({ requested }: { readonly requested: number }) =>
  html`<p>Queued ${counted(requested, 'delivery', 'deliveries')}.</p>`

/** Sends again what was given up or dropped in the chosen span, everywhere or at one endpoint. */
function RedeliverFailed({ endpoint }: { readonly endpoint: string }) {
  const { range, label, zone } = useSpan()
  const body = { ...range, time_zone: zone, endpoint: endpoint || undefined }
  const run = () => send('POST', '/v1/deliveries/redeliver', body)
  const about = html`<p>Resends all alerts given up or dropped${endpoint !== '' && ` at ${endpoint}`} in this period (${label}), under the same ids, so receivers can ignore duplicates.</p>`
  return html`<${Action} label="Resend failed" scope="write" about=${about} run=${run} said=${saidAsked} />`
}

export function AlertsPage() {
  const { params } = useLocation()
  const { range, label, zone } = useSpan()
  const after = params.get('after') ?? ''
  const [type = '', subject = '', endpoint = '', what = ''] = ['type', 'subject', 'endpoint', 'outcome'].map(
    (name) => params.get(name) ?? '',
  )
  const filters = { type, subject, endpoint, outcome: what === '' ? [] : what.split(',') }
  const path = pathOf('/v1/alerts', { ...range, ...filters, time_zone: zone, limit: '50', after })
  const asked = useAnswer<Page<ListedAlert>>(path, after === '' ? 5_000 : undefined)
  const endpoints = useAnswer<Page<Entity>>('/v1/endpoints?limit=1000').data?.items.map(({ name }) => name) ?? []
  const set = (name: string) => (value: string) => setParams({ [name]: value, after: undefined })
  const types = { '': 'all types', ...alertTypeNames }
  const names = [...new Set([...endpoints, ...(endpoint === '' ? [] : [endpoint])])]
  const everyEndpoint = { '': 'all endpoints', ...Object.fromEntries(names.map((one) => [one, one])) }
  const isFiltered = type + subject + endpoint + what !== ''
  const none = html`<${NothingHere} what=${`No alerts ${isFiltered ? 'with these filters ' : ''}in this period.`} />`
  return html`
    <div class="head"><h1>Alerts</h1><${RedeliverFailed} endpoint=${endpoint} /></div>
    <${Tabs} of=${alertTabs} label="Alerts" />
    <div class="row">
      <${Field} isTool label="Type" options=${types} value=${type} onValue=${set('type')} />
      <${Field} isTool label="Endpoint" options=${everyEndpoint} value=${endpoint} onValue=${set('endpoint')} />
      <${Field} isTool label="Deliveries" options=${outcomeChoices} value=${what} onValue=${set('outcome')} />
      <${Field} isTool label="Subject" on="change" suggest="subject" value=${subject} onValue=${set('subject')} />
    </div>
    <${ListPanel} title=${`Alerts, ${label}`} asked=${asked} path=${path} rows=${14} none=${none} caption="Alerts" columns=${columnsFor(endpoint)} keyOf=${({ id }: ListedAlert) => id} />
  `
}
