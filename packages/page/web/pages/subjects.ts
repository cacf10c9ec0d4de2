import { useState } from 'preact/hooks'
import type { Alert, Entity, Invoice, Key, Page, Usage, UsageRow } from '../answers.ts'
import { pathOf, send, useAnswer } from '../api.ts'
import { change, count, percent } from '../format.ts'
import { html } from '../html.ts'
import { describeAlert } from '../parts/describe-alert.ts'
import { Action, typed } from '../parts/dialog.ts'
import { Copy, Panel } from '../parts/panel.ts'
import { useSpan } from '../parts/span.ts'
import { type Column, Table } from '../parts/table.ts'
import { Subject, Time } from '../parts/words.ts'
import { go, hrefOf, setParams, usePlace } from '../place.ts'
import { may } from '../session.ts'
import { DecisionList } from './decisions.ts'
import { UsageChart } from './overview.ts'
import { usageColumns } from './usage.ts'

const columns: readonly Column<UsageRow>[] = [
  { name: 'Subject', cell: ({ subject = '' }) => html`<${Subject} id=${subject} />` },
  { name: 'Units', isNumber: true, cell: ({ cost }) => count(cost) },
  { name: '± before', isNumber: true, cell: (row) => change(row.change) },
  { name: 'Decisions', isNumber: true, cell: ({ count: all }) => count(all) },
  { name: 'Refused', isNumber: true, cell: ({ denied }) => count(denied) },
  { name: 'Of these', isNumber: true, cell: ({ denied, count: all }) => percent(Number(denied), Number(all)) },
]

/** Everybody who asked in the span: the largest first, or those whose name begins with what is typed. */
export function SubjectsPage() {
  const { params } = usePlace()
  const { from, label } = useSpan()
  const [prefix, setPrefix] = useState(params.get('subject_prefix') ?? '')
  const order = params.get('order') ?? '-cost'
  const path = pathOf('/v1/usage', {
    ...{ from, step: 'total', by: 'subject', top: '100', other: 'false', order, compare: 'previous', numbers: 'text' },
    subject_prefix: params.get('subject_prefix') ?? '',
  })
  const asked = useAnswer<Usage>(path)
  const find = (event: Event) => {
    event.preventDefault()
    setParams({ subject_prefix: prefix })
  }
  return html`
    <div class="head">
      <h1>Subjects</h1>
      <form class="row" onSubmit=${find}>
        <input aria-label="Name begins with" placeholder="name begins with" value=${prefix} onInput=${(event: Event) => setPrefix(typed(event))} />
        <button type="submit">Find</button>
        <button type="button" onClick=${() => go(hrefOf(`/subjects/${encodeURIComponent(prefix)}`))} disabled=${prefix === ''}>Open</button>
        <select aria-label="Order" value=${order} onChange=${(event: Event) => setParams({ order: typed(event) })}>
          <option value="-cost">most units</option><option value="-denied">most refused</option><option value="-count">most decisions</option>
        </select>
      </form>
    </div>
    <${Panel} title=${`Who asked, ${label}`} asked=${asked} path=${path} rows=${14} empty=${({ totals }: Usage) => (totals.count === '0' ? 'Nobody in this span.' : undefined)}>
      ${({ rows }: Usage) => html`<${Table} caption="Subjects" columns=${columns} rows=${rows} keyOf=${({ subject }: UsageRow) => subject} />`}
    <//>
  `
}

const tabs = { use: 'Use', decisions: 'Decisions', keys: 'Keys', alerts: 'Alerts', invoices: 'Invoices' } as const
type Tab = keyof typeof tabs

function Use({ id }: { readonly id: string }) {
  const { from, step, zone, label } = useSpan()
  const { params } = usePlace()
  const by = params.get('by') ?? 'route'
  const given = { from, subject: id, time_zone: zone, numbers: 'text' }
  const chartPath = pathOf('/v1/usage', { ...given, step, fill: 'zero' })
  const listPath = pathOf('/v1/usage', { ...given, step: 'total', by, top: '20', compare: 'previous' })
  const csvPath = pathOf('/v1/usage', { from, subject: id, time_zone: zone, step, by, format: 'csv' })
  const empty = ({ totals }: Usage) => (totals.count === '0' ? 'Nothing in this span.' : undefined)
  const tools = html`<select class="small" aria-label="By" value=${by} onChange=${(event: Event) => setParams({ by: typed(event) })}>
      ${['route', 'denied_by', 'key_id', 'plan'].map((one) => html`<option value=${one}>by ${{ denied_by: 'limit', key_id: 'key' }[one] ?? one}</option>`)}
    </select>
    <a class="small" href=${csvPath} download=${`${id}.csv`}>CSV</a>`
  return html`
    <${Panel} title=${`Decisions, ${label}`} asked=${useAnswer<Usage>(chartPath)} path=${chartPath} rows=${9} empty=${empty}>
      ${(data: Usage) => html`<${UsageChart} usage=${data} title=${`Decisions of ${id}, ${label}`} />`}
    <//>
    <${Panel} title="For what" asked=${useAnswer<Usage>(listPath)} path=${listPath} tools=${tools} empty=${empty}>
      ${(data: Usage) => html`<${Table} caption="Usage" columns=${usageColumns([by], true, data.totals.cost)} rows=${data.rows} keyOf=${(_: UsageRow, at: number) => String(at)} />`}
    <//>
  `
}

function Keys({ id }: { readonly id: string }) {
  const path = pathOf('/v1/keys', { subject: id })
  const asked = useAnswer<Page<Key>>(path)
  const make = async () => {
    const { key, id: name } = await send<{ key: string; id: string }>(
      'POST',
      `/v1/subjects/${encodeURIComponent(id)}/keys`,
      {},
    )
    asked.again()
    return html`<p>The key ${name}. It is shown this once:</p><pre>${key}</pre><${Copy} text=${key} label="Copy" />`
  }
  const end = (name: string) => async () => {
    await send('DELETE', `/v1/keys/${encodeURIComponent(name)}`)
    asked.again()
    return undefined
  }
  const keyColumns: readonly Column<Key>[] = [
    { name: 'Key', cell: ({ id: name }) => name },
    { name: 'Ends', cell: ({ expires }) => (expires === null ? 'never' : html`<${Time} at=${expires} />`) },
    {
      name: '',
      cell: ({ id: name }) =>
        html`<${Action} label="Revoke" isDanger isDisabled=${!may('keys')} about=${`The key ${name} ends at once. Requests with it are refused from then on.`} run=${end(name)} />`,
    },
  ]
  const tools = html`<${Action} label="New key" isDisabled=${!may('keys')} about=${`A new key of ${id} is made. It is shown once, and stored as its hash.`} run=${make} />`
  return html`<${Panel} title="Keys" asked=${asked} path=${path} tools=${tools} empty=${({ items }: Page<Key>) => (items.length === 0 ? 'No key.' : undefined)}>
    ${({ items }: Page<Key>) => html`<${Table} caption="Keys" columns=${keyColumns} rows=${items} keyOf=${({ id: name }: Key) => name} />`}
  <//>`
}

function Alerts({ id }: { readonly id: string }) {
  const path = pathOf('/v1/alerts', { subject: id, limit: '50' })
  return html`<${Panel} title="Alerts" asked=${useAnswer<Page<Alert>>(path)} path=${path} empty=${({ items }: Page<Alert>) => (items.length === 0 ? 'None was raised.' : undefined)}>
    ${({ items }: Page<Alert>) => html`<div class="stack">${items.map((one) => html`<div key=${one.id}><a href=${hrefOf(`/alerts/${one.id}`)}>${describeAlert(one)}</a> <span class="small quiet"><${Time} at=${one.time} /></span></div>`)}</div>`}
  <//>`
}

function Invoices({ id }: { readonly id: string }) {
  const path = pathOf('/v1/invoices', { subject: id })
  const invoiceColumns: readonly Column<Invoice>[] = [
    { name: 'Month', cell: ({ id: name, period }) => html`<a href=${hrefOf(`/invoices/${name}`)}>${period}</a>` },
    { name: 'Closed', cell: ({ closed_at: at }) => html`<${Time} at=${at} />` },
  ]
  return html`<${Panel} title="Invoices" asked=${useAnswer<Page<Invoice>>(path)} path=${path} empty=${({ items }: Page<Invoice>) => (items.length === 0 ? 'No month was closed.' : undefined)}>
    ${({ items }: Page<Invoice>) => html`<${Table} caption="Invoices" columns=${invoiceColumns} rows=${items} keyOf=${({ id: name }: Invoice) => name} />`}
  <//>`
}

/** Makes a link that shows a customer its own page, and nothing else. */
function PortalLink({ id }: { readonly id: string }) {
  const [length, setLength] = useState('1h')
  const make = async () => {
    const { token } = await send<{ token: string }>('POST', `/v1/subjects/${encodeURIComponent(id)}/portal`, {
      expires_in: length,
    })
    const link = `${location.origin}/me#${token}`
    return html`<p>Everybody who has this link sees what is of ${id}:</p><pre>${link}</pre><${Copy} text=${link} label="Copy" />`
  }
  const about = html`<p>A link to the page of ${id}: its use, decisions, alerts and invoices, to be read and not to be changed.</p>
    <label class="field">It ends after
      <select value=${length} onChange=${(event: Event) => setLength(typed(event))}>${['15m', '1h', '24h', '7d'].map((one) => html`<option value=${one}>${one}</option>`)}</select>
    </label>`
  return html`<${Action} label="Portal link" about=${about} run=${make} isDisabled=${!may('keys')} />`
}

function ResetLimits({ id }: { readonly id: string }) {
  const reset = async () => {
    const { changed } = await send<{ changed: readonly { name: string }[] }>(
      'POST',
      `/v1/subjects/${encodeURIComponent(id)}/limits/reset`,
      {},
    )
    return html`<p>${changed.length === 0 ? 'Nothing was counted.' : `Reset: ${changed.map(({ name }) => name).join(', ')}.`}</p>`
  }
  return html`<${Action} label="Reset limits" isDisabled=${!may('limits')} about=${`All that was counted for the limits of ${id} is forgotten, and its blocks are lifted. This goes to the audit.`} run=${reset} />`
}

/** One subject: its use, decisions, keys, alerts and invoices. */
export function SubjectPage({ id }: { readonly id: string }) {
  const { params } = usePlace()
  const given = params.get('tab') ?? 'use'
  const tab: Tab = given in tabs ? (given as Tab) : 'use'
  const entity = useAnswer<Entity['body']>(may('read') ? `/v1/subjects/${encodeURIComponent(id)}` : undefined)
  const address = (name: string) => hrefOf(`/subjects/${encodeURIComponent(id)}`, name === 'use' ? {} : { tab: name })
  const about =
    entity.data === undefined
      ? entity.error?.status === 404
        ? 'not in the policy'
        : ''
      : `plan ${String(entity.data.plan ?? '–')}${entity.data.timeZone === undefined ? '' : `, ${String(entity.data.timeZone)}`}`
  return html`
    <div class="head">
      <div><h1>${id}</h1><span class="quiet">${about}</span></div>
      <div class="row"><${Copy} text=${id} label="Copy id" /><${ResetLimits} id=${id} /><${PortalLink} id=${id} /></div>
    </div>
    <nav class="tabs" aria-label=${`Of ${id}`}>
      ${Object.entries(tabs).map(([name, text]) => html`<a key=${name} href=${address(name)} aria-current=${name === tab ? 'page' : undefined}>${text}</a>`)}
    </nav>
    ${tab === 'use' && html`<${Use} id=${id} />`}
    ${tab === 'decisions' && html`<${DecisionList} fixed=${{ subject: id }} />`}
    ${tab === 'keys' && html`<${Keys} id=${id} />`}
    ${tab === 'alerts' && html`<${Alerts} id=${id} />`}
    ${tab === 'invoices' && html`<${Invoices} id=${id} />`}
  `
}
