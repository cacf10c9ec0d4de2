import { useState } from 'preact/hooks'
import type { Invoice, Page, Quote } from '../answers.ts'
import { pathOf, type Refusal, send, useAnswer } from '../api.ts'
import { count, dateOf } from '../format.ts'
import { html } from '../html.ts'
import { Action } from '../parts/dialog.ts'
import { Field } from '../parts/field.ts'
import { Copy, Panel } from '../parts/panel.ts'
import { QuoteTable } from '../parts/quote.ts'
import { type Column, PagedTable, Table } from '../parts/table.ts'
import { Tabs } from '../parts/tabs.ts'
import { Subject, Time } from '../parts/words.ts'
import { hrefOf, setParams, usePlace } from '../place.ts'
import { may, needs } from '../session.ts'

export const moneyTabs = { '/invoices': 'Invoices', '/prices': 'Prices' }

const columns: readonly Column<Invoice>[] = [
  { name: 'Subject', isPlain: true, cell: ({ subject }) => html`<${Subject} id=${subject} />` },
  { name: 'Month', isPlain: true, cell: ({ id, period }) => html`<a href=${hrefOf(`/invoices/${id}`)}>${period}</a>` },
  { name: 'From', isMinor: true, cell: ({ from }) => html`<${Time} at=${from} />` },
  { name: 'To', isMinor: true, cell: ({ to }) => html`<${Time} at=${to} />` },
  { name: 'Closed', cell: ({ closed_at: at }) => html`<${Time} at=${at} />` },
  {
    name: 'File',
    isPlain: true,
    cell: ({ id, subject, period }) =>
      html`<a href=${`/v1/invoices/${id}?format=csv`} download=${`${subject}-${period}.csv`}>CSV</a>`,
  },
]

interface Obstacle {
  readonly path: string
  readonly message: string
}

const Remarks = ({ of }: { readonly of: readonly Obstacle[] }) =>
  html`<ul>${of.map(({ path, message }) => html`<li key=${path}><b>${path}</b> ${message}</li>`)}</ul>`

/** Closes a month of the subjects that are named. */
function Close({ onDone }: { readonly onDone: () => void }) {
  const [year = 2026, month = 1] = dateOf(Date.now(), 'UTC').split('-').map(Number)
  const last = new Date(Date.UTC(year, month - 2, 1)).toISOString().slice(0, 7)
  const [period, setPeriod] = useState(last)
  const [subjects, setSubjects] = useState('')
  const [reason, setReason] = useState('')
  const close = async () => {
    const list = subjects.split(/[\s,]+/).filter((one) => one !== '')
    const accepted = reason === '' ? {} : { accept_gaps: reason }
    try {
      const { items, nothing } = await send<{ items: readonly Invoice[]; nothing: readonly Obstacle[] }>(
        'POST',
        '/v1/invoices',
        {
          period,
          subjects: list,
          ...accepted,
        },
      )
      onDone()
      return html`<p>Closed: ${items.map((one) => html`<a key=${one.id} href=${hrefOf(`/invoices/${one.id}`)}>${one.subject}</a> `)}</p>
        <${Remarks} of=${nothing} />`
    } catch (error) {
      const { body } = error as Refusal
      if (!Array.isArray(body.problems)) throw error
      onDone()
      return html`<p>Not all could be closed:</p>
        <${Remarks} of=${body.problems as Obstacle[]} />`
    }
  }
  const about = html`
    <p>A month is closed for good: what comes later is an adjustment of the next invoice.</p>
    <${Field} label="Month" required pattern="\\d{4}-\\d{2}" value=${period} onValue=${setPeriod} />
    <${Field} label="Subjects, with blanks between them" required suggest="subject" value=${subjects} onValue=${setSubjects} />
    <${Field} label="If records are missing: why it is closed all the same" value=${reason} onValue=${setReason} />`
  return html`<${Action} label="Close a month" ...${needs('billing')} about=${about} run=${close} />`
}

export function InvoicesPage() {
  const { params } = usePlace()
  const [subject, period] = [params.get('subject') ?? '', params.get('period') ?? '']
  const path = pathOf('/v1/invoices', { subject, period, limit: '50', after: params.get('after') ?? '' })
  const asked = useAnswer<Page<Invoice>>(path)
  const set = (name: string) => (value: string) => setParams({ [name]: value, after: undefined })
  return html`
    <div class="head"><h1>Invoices</h1><${Close} onDone=${asked.again} /></div>
    <${Tabs} of=${moneyTabs} label="Money" />
    <div class="row">
      <${Field} isTool label="Subject" on="change" suggest="subject" value=${subject} onValue=${set('subject')} />
      <${Field} isTool label="Month" on="change" placeholder="month: 2026-11" value=${period} onValue=${set('period')} />
    </div>
    <${Panel} title="Closed months" asked=${asked} path=${path} rows=${8} empty=${({ items }: Page<Invoice>) => (items.length === 0 ? 'No month was closed.' : undefined)}>
      ${({ items, next }: Page<Invoice>) => html`<${PagedTable} caption="Invoices" columns=${columns} rows=${items} next=${next} keyOf=${({ id }: Invoice) => id} />`}
    <//>
  `
}

interface Adjustment {
  readonly for_period: string
  readonly units: string
  readonly decisions: string
  readonly amount: string
  readonly currency?: string
}

interface Document {
  readonly subject: string
  readonly period: { readonly name: string; readonly from: string; readonly to: string; readonly time_zone: string }
  readonly closed_at: string
  readonly quote: Quote
  readonly totals: readonly { readonly amount: string; readonly currency: string }[]
  readonly adjustments: readonly Adjustment[]
  readonly accepted_gaps: { readonly reason?: string } | null
}

const adjustmentColumns: readonly Column<Adjustment>[] = [
  { name: 'For', isPlain: true, cell: ({ for_period: period }) => period },
  { name: 'Units', isNumber: true, cell: ({ units }) => count(units) },
  { name: 'Decisions', isNumber: true, cell: ({ decisions }) => count(decisions) },
  { name: 'Amount', isNumber: true, cell: ({ amount, currency = '' }) => `${amount} ${currency}` },
]

export function InvoicePage({ id }: { readonly id: string }) {
  const path = `/v1/invoices/${encodeURIComponent(id)}`
  const asked = useAnswer<Document>(path)
  const { data } = asked
  return html`
    <div class="head">
      <div><h1>${data === undefined ? 'Invoice' : `Invoice of ${data.subject}, ${data.period.name}`}</h1><code class="quiet">${id}</code></div>
      <div class="row"><${Copy} text=${location.href} label="Copy link" /><a class="button" href=${`${path}?format=csv`} download=${`${id}.csv`}>CSV</a><button onClick=${() => print()}>Print</button></div>
    </div>
    <${Panel} title="As it was closed" asked=${asked} path=${path} rows=${9}>
      ${({
        subject,
        period,
        closed_at,
        quote,
        totals,
        accepted_gaps: gaps,
        adjustments,
      }: Document) => html`<div class="stack">
        <dl class="facts">
          <dt>Subject</dt><dd>${may('read') ? html`<${Subject} id=${subject} />` : subject}</dd>
          <dt>Month</dt><dd><${Time} at=${period.from} zone=${period.time_zone} /> to <${Time} at=${period.to} zone=${period.time_zone} />, ${period.time_zone}</dd>
          <dt>Closed</dt><dd><${Time} at=${closed_at} isLong /></dd>
          ${gaps !== null && html`<dt>Records missing</dt><dd>${gaps.reason ?? 'yes'}</dd>`}
        </dl>
        <${QuoteTable} quote=${quote} />
        ${adjustments.length > 0 && html`<h3>Adjustments of earlier months</h3><${Table} caption="Adjustments" columns=${adjustmentColumns} rows=${adjustments} keyOf=${(one: Adjustment) => one.for_period} />`}
        ${adjustments.length > 0 && html`<p class="total">With adjustments <b>${totals.map(({ amount, currency }) => `${amount} ${currency}`).join(' and ')}</b></p>`}
      </div>`}
    <//>
  `
}
