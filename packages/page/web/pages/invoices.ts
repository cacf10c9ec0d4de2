import { useState } from 'preact/hooks'
import type { Invoice, Page } from '../answers.ts'
import { pathOf, send, useAnswer } from '../api.ts'
import { count } from '../format.ts'
import { html } from '../html.ts'
import { Action, typed } from '../parts/dialog.ts'
import { Panel } from '../parts/panel.ts'
import { type Column, Pages, Table } from '../parts/table.ts'
import { Subject, Time } from '../parts/words.ts'
import { hrefOf, setParams, usePlace } from '../place.ts'
import { may } from '../session.ts'

const columns: readonly Column<Invoice>[] = [
  { name: 'Subject', cell: ({ subject }) => html`<${Subject} id=${subject} />` },
  { name: 'Month', cell: ({ id, period }) => html`<a href=${hrefOf(`/invoices/${id}`)}>${period}</a>` },
  { name: 'Closed', cell: ({ closed_at: at }) => html`<${Time} at=${at} />` },
]

/** Closes a month of the subjects that are named. */
function Close({ onDone }: { readonly onDone: () => void }) {
  const [period, setPeriod] = useState('')
  const [subjects, setSubjects] = useState('')
  const close = async () => {
    const list = subjects.split(/[\s,]+/).filter((one) => one !== '')
    const { items } = await send<{ items: readonly Invoice[] }>('POST', '/v1/invoices', { period, subjects: list })
    onDone()
    return html`<p>Closed: ${items.map(({ subject }) => subject).join(', ')}.</p>`
  }
  const about = html`
    <p>The month is closed for good: what comes later is an adjustment of the next invoice.</p>
    <label class="field">Month<input required pattern="\\d{4}-\\d{2}" placeholder="2026-11" value=${period} onInput=${(event: Event) => setPeriod(typed(event))} /></label>
    <label class="field">Subjects<textarea required rows="3" value=${subjects} onInput=${(event: Event) => setSubjects(typed(event))}></textarea></label>`
  return html`<${Action} label="Close a month" isDisabled=${!may('billing')} about=${about} run=${close} />`
}

export function InvoicesPage() {
  const { params } = usePlace()
  const after = params.get('after')
  const path = pathOf('/v1/invoices', {
    subject: params.get('subject') ?? '',
    period: params.get('period') ?? '',
    limit: '50',
    after: after ?? '',
  })
  const asked = useAnswer<Page<Invoice>>(path)
  const change = (name: string) => (event: Event) => setParams({ [name]: typed(event).trim(), after: undefined })
  return html`
    <div class="head"><h1>Invoices</h1><div class="row">
      <input aria-label="Subject" placeholder="subject" value=${params.get('subject') ?? ''} onChange=${change('subject')} />
      <input aria-label="Month" placeholder="2026-11" value=${params.get('period') ?? ''} onChange=${change('period')} />
      <${Close} onDone=${asked.again} />
    </div></div>
    <${Panel} title="Closed months" asked=${asked} path=${path} rows=${8} empty=${({ items }: Page<Invoice>) => (items.length === 0 ? 'No month was closed.' : undefined)}>
      ${({ items, next }: Page<Invoice>) => html`<div class="stack">
        <${Table} caption="Invoices" columns=${columns} rows=${items} keyOf=${({ id }: Invoice) => id} />
        <${Pages} after=${after} next=${next} onPage=${(page: string | undefined) => setParams({ after: page })} />
      </div>`}
    <//>
  `
}

interface Line {
  readonly name: string
  readonly measure?: string
  readonly quantity?: number
  readonly included?: number
  readonly amount: string
}
interface Document {
  readonly subject: string
  readonly period: string
  readonly from: string
  readonly to: string
  readonly closed_at: string
  readonly currency?: string
  readonly total?: string
  readonly quote?: { readonly currency: string; readonly lines: readonly Line[]; readonly total: string }
  readonly lines?: readonly Line[]
}

const lineColumns: readonly Column<Line>[] = [
  { name: 'Line', cell: ({ name }) => name },
  {
    name: 'Counted',
    isNumber: true,
    cell: ({ quantity, measure }) => (quantity === undefined ? '' : `${count(quantity)} ${measure}`),
  },
  { name: 'Included', isNumber: true, cell: ({ included }) => count(included) },
  { name: 'Amount', isNumber: true, cell: ({ amount }) => amount },
]

export function InvoicePage({ id }: { readonly id: string }) {
  const path = `/v1/invoices/${encodeURIComponent(id)}`
  return html`
    <div class="head"><h1>Invoice</h1><a class="button" href=${`${path}?format=csv`} download=${`${id}.csv`}>CSV</a></div>
    <${Panel} title="As it was closed" asked=${useAnswer<Document>(path)} path=${path}>
      ${(data: Document) => {
        const { lines = [], currency = '', total = '' } = data.quote ?? data
        return html`<div class="stack">
          <dl class="facts">
            <dt>Subject</dt><dd><${Subject} id=${data.subject} /></dd>
            <dt>Month</dt><dd>${data.period}: <${Time} at=${data.from} /> to <${Time} at=${data.to} /></dd>
            <dt>Closed</dt><dd><${Time} at=${data.closed_at} isLong /></dd>
            <dt>Total</dt><dd><b>${total} ${currency}</b></dd>
          </dl>
          <${Table} caption="Lines" columns=${lineColumns} rows=${lines} keyOf=${({ name }: Line, at: number) => `${name} ${at}`} />
        </div>`
      }}
    <//>
  `
}
