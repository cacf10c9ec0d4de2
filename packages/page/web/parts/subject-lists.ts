import type { ListedAlert } from '@weir/api/alerts.ts'
import type { Page } from '@weir/api/schema.ts'
import { pathOf, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf, useLocation } from '../location.ts'
import { Panel } from './panel.ts'
import { NothingHere, useSpan } from './span.ts'
import { type Column, PagedTable, Table } from './table.ts'
import { Time } from './words.ts'

/** The alerts about a subject; customers see it on their page, without what only operators open. */
export function AlertsOf({ id, isOwn = false }: { readonly id: string; readonly isOwn?: boolean }) {
  const { range, label, zone } = useSpan()
  const after = useLocation().params.get('after') ?? ''
  const paged = isOwn ? { limit: '10' } : { subject: id, limit: '50', after }
  const path = pathOf('/v1/alerts', { ...range, time_zone: zone, ...paged })
  const columns: readonly Column<ListedAlert>[] = [
    {
      name: 'What',
      isPlain: true,
      cell: (one) => (isOwn ? one.summary : html`<a href=${hrefOf(`/alerts/${one.id}`)}>${one.summary}</a>`),
    },
    { name: 'When', isPlain: true, cell: ({ time }) => html`<${Time} at=${time} />` },
  ]
  const empty = ({ items }: Page<ListedAlert>) =>
    items.length === 0 ? html`<${NothingHere} what="No alerts in this period." />` : undefined
  return html`<${Panel} title=${`${isOwn ? 'Your alerts' : 'Alerts'}, ${label}`} asked=${useAnswer<Page<ListedAlert>>(path, 15_000)} path=${path} rows=${6} empty=${empty}>
    ${({ items, next }: Page<ListedAlert>) => (isOwn ? html`<${Table} caption="Alerts" columns=${columns} rows=${items} keyOf=${({ id: name }: ListedAlert) => name} />` : html`<${PagedTable} caption="Alerts" columns=${columns} rows=${items} next=${next} keyOf=${({ id: name }: ListedAlert) => name} />`)}
  <//>`
}
