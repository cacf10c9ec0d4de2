import type { Silence } from '@weir/api/alerts.ts'
import type { Entity } from '@weir/api/policy.ts'
import type { Page } from '@weir/api/schema.ts'
import type { Status } from '@weir/api/status.ts'
import { counted } from '@weir/core/format.ts'
import { useState } from 'preact/hooks'
import { send, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf } from '../location.ts'
import { Action } from '../parts/dialog.ts'
import { Field } from '../parts/field.ts'
import { Panel } from '../parts/panel.ts'
import { inline } from '../parts/settings.ts'
import { actionsOf, type Column, Table } from '../parts/table.ts'
import { Tabs } from '../parts/tabs.ts'
import { Part, Subject, Time } from '../parts/words.ts'
import { alertTabs, alertTypeNames, notDeliveredHref } from './alerts.ts'

function Test({ endpoint: { name, body } }: { readonly endpoint: Entity }) {
  const isOfSubjects = body.type === 'subject'
  const [subject, setSubject] = useState('')
  const path = `/v1/endpoints/${encodeURIComponent(name)}/test`
  const run = () => send('POST', path, isOfSubjects ? { subject } : {})
  const said = ({ id }: { readonly id: string }) =>
    html`<p>Sent. <a href=${hrefOf(`/alerts/${id}`)}>Open the alert</a> to see its delivery.</p>`
  const about = html`<p>Sends a test alert to ${name}. A disabled endpoint that accepts it is enabled again.</p>
    ${isOfSubjects && html`<${Field} label="Contact of" suggest="subject" required value=${subject} onValue=${setSubject} />`}`
  return html`<${Action} label="Send test" scope="write" about=${about} run=${run} said=${said} />`
}

/** Shows the secret that Weir makes for a webhook that names none. */
function ShowSecret({ endpoint: { name, body } }: { readonly endpoint: Entity }) {
  if ((body.type ?? 'webhook') !== 'webhook' || body.secretEnv !== undefined) return null
  const run = () => send<{ readonly secret: string }>('GET', `/v1/endpoints/${encodeURIComponent(name)}/secret`)
  const said = ({ secret }: { readonly secret: string }) => ({ secret, about: `Verifies webhooks sent to ${name}.` })
  const about = html`<p>Shows the secret that signs the webhooks of ${name}. Your receiver verifies them with it.</p>`
  return html`<${Action} label="Secret" scope="admin" about=${about} run=${run} said=${said} />`
}

/** Whether an endpoint gets deliveries now, and why not. */
function State({ endpoint: { name, body }, held }: { readonly endpoint: Entity; readonly held: Status['held_back'] }) {
  if (body.paused === true) return html`<span class="word degraded">❚❚ paused</span>`
  const addresses = held.filter((one) => one.endpoint === name).map((one) => one.addresses)
  if (addresses.length === 0) return null
  const where = body.type === 'subject' ? ` at ${counted(Math.max(...addresses), 'address', 'addresses')}` : ''
  return html`<a class="word refused" href=${notDeliveredHref(name)} title="Failed at least five times in a row. Weir retries within ten minutes, then sends the waiting alerts.">✕ failing${where}: deliveries held back</a>`
}

const endpointColumns = (held: Status['held_back']): readonly Column<Entity>[] => [
  { name: 'Endpoint', isPlain: true, cell: ({ name }) => html`<b><${Part} kind="endpoints" name=${name} /></b>` },
  { name: 'Kind', isPlain: true, cell: ({ body }) => String(body.type ?? 'webhook') },
  {
    name: 'Target',
    cell: ({ body }) =>
      html`<code>${String(body.url ?? body.urlEnv ?? body.secretEnv ?? inline(body.to ?? 'the subject’s contact'))}</code>`,
  },
  {
    name: 'Alerts',
    isMinor: true,
    cell: ({ body }) => {
      const only: unknown[] = Object.values(Object(body.only)).flat()
      return only.map((one) => alertTypeNames[String(one)] ?? String(one)).join(', ') || 'all'
    },
  },
  { name: 'State', isPlain: true, cell: (endpoint) => html`<${State} endpoint=${endpoint} held=${held} />` },
  actionsOf(
    (endpoint) =>
      html`<a class="button" href=${hrefOf('/alerts', { endpoint: endpoint.name })}>Deliveries</a><${Test} endpoint=${endpoint} /><${ShowSecret} endpoint=${endpoint} />`,
  ),
]

function NewSilence({ again }: { readonly again: () => void }) {
  const [subject, setSubject] = useState('')
  const [type, setType] = useState('')
  const [length, setLength] = useState('2h')
  const [reason, setReason] = useState('')
  const body = {
    for: length,
    reason: reason || undefined,
    subjects: subject === '' ? undefined : [subject],
    types: type === '' ? undefined : [type],
  }
  const about = html`
    <p>Matching alerts are still listed but not sent.</p>
    <${Field} label="Subject" suggest="subject" placeholder="any" required=${type === ''} value=${subject} onValue=${setSubject} />
    <${Field} label="Type" options=${{ '': 'any', ...alertTypeNames }} value=${type} onValue=${setType} />
    <${Field} label="For" options=${{ '1h': 'an hour', '2h': 'two hours', '24h': 'a day', '7d': 'a week' }} value=${length} onValue=${setLength} />
    <${Field} label="Reason (optional)" value=${reason} onValue=${setReason} />`
  return html`<${Action} label="New silence" scope="write" about=${about} run=${() => send('POST', '/v1/silences', body)} again=${again} />`
}

function Silences() {
  const asked = useAnswer<Page<Silence>>('/v1/silences')
  const columns: readonly Column<Silence>[] = [
    {
      name: 'Alerts',
      isPlain: true,
      cell: ({ subjects = [] }) =>
        subjects.length === 0 ? 'all subjects' : subjects.map((one) => html`<${Subject} key=${one} id=${one} /> `),
    },
    {
      name: 'Types',
      isPlain: true,
      cell: ({ types = [], limits = [] }) =>
        [...types.map((type) => alertTypeNames[type] ?? type), ...limits].join(', ') || 'all alerts',
    },
    { name: 'Until', cell: ({ until }) => html`<${Time} at=${until} />` },
    { name: 'By', isMinor: true, cell: ({ by }) => by },
    { name: 'Reason', cell: ({ reason = '' }) => reason },
    {
      name: 'State',
      isPlain: true,
      cell: ({ state }) =>
        state === 'active'
          ? html`<span class="word degraded">◌ active</span>`
          : html`<span class="quiet">${state}</span>`,
    },
    actionsOf(
      ({ name, state }) =>
        html`<${Action} label="End" scope="write" isDisabled=${state === 'ended'} about="Ends the silence: new alerts are sent again." run=${() => send('DELETE', `/v1/silences/${name}`)} again=${asked.again} />`,
    ),
  ]
  const empty = ({ items }: Page<Silence>) => (items.length === 0 ? 'No silences.' : undefined)
  return html`<${Panel} title="Silences" asked=${asked} path="/v1/silences" empty=${empty} tools=${html`<${NewSilence} again=${asked.again} />`}>
    ${({ items }: Page<Silence>) => html`<${Table} caption="Silences" columns=${columns} rows=${items} keyOf=${({ name }: Silence) => name} />`}
  <//>`
}

/** Endpoints, and what is kept from going there for a while. */
export function EndpointsPage() {
  const asked = useAnswer<Page<Entity>>('/v1/endpoints')
  const held = useAnswer<Status>('/v1/status', 15_000).data?.held_back ?? []
  const empty = ({ items }: Page<Entity>) =>
    items.length === 0 ? 'No endpoints in the policy: alerts are not sent.' : undefined
  return html`
    <h1>Endpoints</h1>
    <${Tabs} of=${alertTabs} label="Alerts" />
    <${Panel} title="Endpoints" asked=${asked} path="/v1/endpoints" empty=${empty}>
      ${({ items }: Page<Entity>) => html`<${Table} caption="Endpoints" columns=${endpointColumns(held)} rows=${items} keyOf=${({ name }: Entity) => name} />`}
    <//>
    <${Silences} />
  `
}
