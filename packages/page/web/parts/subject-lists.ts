import type { Alert, Invoice, Page } from '../answers.ts'
import { pathOf, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf, usePlace } from '../place.ts'
import { Panel } from './panel.ts'
import { NothingHere, useSpan } from './span.ts'
import { type Column, PagedTable, Table } from './table.ts'
import { Time } from './words.ts'

/** What was told about a subject; customers see it on their page, without what only operators open. */
export function AlertsOf({ id, isOwn = false }: { readonly id: string; readonly isOwn?: boolean }) {
  const { range, label, zone } = useSpan()
  const after = usePlace().params.get('after') ?? ''
  const paged = isOwn ? { limit: '10' } : { subject: id, limit: '50', after }
  const path = pathOf('/v1/alerts', { ...range, time_zone: zone, ...paged })
  const columns: readonly Column<Alert>[] = [
    {
      name: 'What',
      isPlain: true,
      cell: (one) => (isOwn ? one.summary : html`<a href=${hrefOf(`/alerts/${one.id}`)}>${one.summary}</a>`),
    },
    { name: 'When', isPlain: true, cell: ({ time }) => html`<${Time} at=${time} />` },
  ]
  const empty = ({ items }: Page<Alert>) =>
    items.length === 0 ? html`<${NothingHere} what="Nothing was told in this span." />` : undefined
  return html`<${Panel} title=${`${isOwn ? 'What you were told' : 'Alerts'}, ${label}`} asked=${useAnswer<Page<Alert>>(path, 15_000)} path=${path} rows=${6} empty=${empty}>
    ${({ items, next }: Page<Alert>) => (isOwn ? html`<${Table} caption="Alerts" columns=${columns} rows=${items} keyOf=${({ id: name }: Alert) => name} />` : html`<${PagedTable} caption="Alerts" columns=${columns} rows=${items} next=${next} keyOf=${({ id: name }: Alert) => name} />`)}
  <//>`
}

const invoiceColumns: readonly Column<Invoice>[] = [
  { name: 'Month', isPlain: true, cell: ({ id, period }) => html`<a href=${hrefOf(`/invoices/${id}`)}>${period}</a>` },
  { name: 'From', isMinor: true, cell: ({ from }) => html`<${Time} at=${from} />` },
  { name: 'To', isMinor: true, cell: ({ to }) => html`<${Time} at=${to} />` },
  { name: 'Closed', cell: ({ closed_at: at }) => html`<${Time} at=${at} />` },
  {
    name: 'File',
    isPlain: true,
    cell: ({ id, period }) => html`<a href=${`/v1/invoices/${id}?format=csv`} download=${`${period}.csv`}>CSV</a>`,
  },
]

/** The closed months of a subject. */
export function InvoicesOf({ id, isOwn = false }: { readonly id: string; readonly isOwn?: boolean }) {
  const path = pathOf('/v1/invoices', { subject: isOwn ? '' : id, limit: '36' })
  const empty = ({ items }: Page<Invoice>) => (items.length === 0 ? 'No month was closed yet.' : undefined)
  return html`<${Panel} title="Invoices" asked=${useAnswer<Page<Invoice>>(path)} path=${path} rows=${4} empty=${empty}>
    ${({ items }: Page<Invoice>) => html`<${Table} caption="Invoices" columns=${invoiceColumns} rows=${items.toReversed()} keyOf=${({ id: name }: Invoice) => name} />`}
  <//>`
}
