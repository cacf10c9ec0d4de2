import type { Alert, Invoice, Page, Usage, UsageRow } from '../answers.ts'
import { pathOf, useAnswer } from '../api.ts'
import { count } from '../format.ts'
import { html } from '../html.ts'
import { describeAlert } from '../parts/describe-alert.ts'
import { Panel } from '../parts/panel.ts'
import { useSpan } from '../parts/span.ts'
import { type Column, Table } from '../parts/table.ts'
import { Time } from '../parts/words.ts'
import { hrefOf } from '../place.ts'
import { DecisionList } from './decisions.ts'
import { UsageChart } from './overview.ts'
import { usageColumns } from './usage.ts'

const invoiceColumns: readonly Column<Invoice>[] = [
  { name: 'Month', cell: ({ id, period }) => html`<a href=${hrefOf(`/invoices/${id}`)}>${period}</a>` },
  { name: 'Closed', cell: ({ closed_at: at }) => html`<${Time} at=${at} />` },
]

/** A customer's own page: what it used, what was refused, what it was told and billed. */
export function MePage({ subjects }: { readonly subjects: readonly string[] }) {
  const { from, step, zone, label } = useSpan()
  const given = { from, time_zone: zone, numbers: 'text' }
  const chartPath = pathOf('/v1/usage', { ...given, step, fill: 'zero' })
  const listPath = pathOf('/v1/usage', { ...given, step: 'total', by: 'route', top: '20' })
  const usage = useAnswer<Usage>(chartPath, 15_000)
  const list = useAnswer<Usage>(listPath, 15_000)
  const alerts = useAnswer<Page<Alert>>('/v1/alerts?limit=10', 15_000)
  const invoices = useAnswer<Page<Invoice>>('/v1/invoices?limit=12')
  return html`
    <h1>${subjects.join(', ')}</h1>
    <div class="grid">
      <${Panel} class="wide" title=${`Your use, ${label}`} asked=${usage} path=${chartPath} rows=${9} empty=${({ totals }: Usage) => (totals.count === '0' ? 'Nothing in this span.' : undefined)}>
        ${(data: Usage) => html`<div class="stack">
          <div class="figures">
            <span class="figure"><b>${count(data.totals.cost)}</b>units</span>
            <span class="figure"><b>${count(data.totals.allowed)}</b>requests</span>
            <span class="figure"><b>${count(data.totals.denied)}</b>refused</span>
          </div>
          <${UsageChart} usage=${data} title=${`Your use, ${label}`} />
        </div>`}
      <//>
      <${Panel} class="third" title="What you were told" asked=${alerts} empty=${({ items }: Page<Alert>) => (items.length === 0 ? 'Nothing yet.' : undefined)}>
        ${({ items }: Page<Alert>) => html`<div class="stack">${items.map((one) => html`<div key=${one.id}>${describeAlert(one)}<div class="small quiet"><${Time} at=${one.time} /></div></div>`)}</div>`}
      <//>
      <${Panel} class="half" title="For what" asked=${list} empty=${({ totals }: Usage) => (totals.count === '0' ? 'Nothing in this span.' : undefined)}>
        ${(data: Usage) => html`<${Table} caption="Use by route" columns=${usageColumns(['route'], false, data.totals.cost)} rows=${data.rows} keyOf=${(_: UsageRow, at: number) => String(at)} />`}
      <//>
      <${Panel} class="half" title="Invoices" asked=${invoices} empty=${({ items }: Page<Invoice>) => (items.length === 0 ? 'No month was closed yet.' : undefined)}>
        ${({ items }: Page<Invoice>) => html`<${Table} caption="Invoices" columns=${invoiceColumns} rows=${items} keyOf=${({ id }: Invoice) => id} />`}
      <//>
    </div>
    <${DecisionList} fixed=${{ outcome: 'deny', subject: subjects[0] ?? '' }} />
  `
}
