import type { Usage, UsageRow } from '@weir/api/usage.ts'
import { change, count, quantity } from '@weir/core/format.ts'
import { pathOf, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { setParams, useLocation } from '../location.ts'
import { comparisonOf, comparisons } from './comparison.ts'
import { Field } from './field.ts'
import { MeasureField, stepOf, useColumns, type Whose } from './measure.ts'
import { Panel } from './panel.ts'
import { NothingHere, thisMinute, useSpan } from './span.ts'
import { Table } from './table.ts'
import { measureNames, UsageChart } from './usage-chart.ts'
import { type AnyRow, currencyOf, usageColumns } from './usage-columns.ts'

const ofTree = { subject: 'by subject', parent: 'by parent' }
const groupings = { route: 'by route', denied_by: 'by limit', key_id: 'by key', method: 'by method' }

/** What a subject used over time, and for what; with all below it, where there are some. */
export function SubjectUse(props: { readonly id: string; readonly isAbove: boolean; readonly isOwn?: boolean }) {
  const { id, isAbove, isOwn = false } = props
  const whose: Whose = isAbove ? { within: id } : { subject: id }
  const span = useSpan()
  const { range, zone, label } = span
  const { params } = useLocation()
  const wanted = params.get('by') ?? 'route'
  const unit = params.get('unit') ?? ''
  const columns = useColumns(unit, [wanted], whose)
  const ofUnits = Object.entries(columns.groups).filter(
    ([name]) => !(isAbove ? /^subject,/ : /^(subject|plan)/).test(name),
  )
  const groups: typeof columns.groups =
    unit === '' ? { ...(isAbove && ofTree), ...groupings } : Object.fromEntries(ofUnits)
  const by = Object.hasOwn(groups, wanted) ? wanted : 'route'
  const chosen = comparisonOf(params, span, thisMinute())
  const previous = chosen ?? comparisonOf(new URLSearchParams({ compare: 'previous' }), span, thisMinute())
  const asked = { ...range, time_zone: zone, ...whose, unit }
  const step = stepOf(unit, span.step)
  const texts = { ...asked, numbers: 'text' }
  const chartPath = pathOf('/v1/usage', { ...texts, step, fill: 'zero' })
  const beforePath = pathOf('/v1/usage', { ...texts, ...chosen?.range, step, fill: 'zero' })
  const listPath = pathOf('/v1/usage', { ...texts, step: 'total', by, top: '20', compare: previous?.compare })
  const csvPath = pathOf('/v1/usage', { ...asked, step, by, format: 'csv' })
  const everyMs = isOwn ? 15_000 : undefined
  const chart = useAnswer<Usage>(chartPath, everyMs)
  const list = useAnswer<Usage>(listPath, everyMs)
  const before = useAnswer<Usage>(chosen === undefined ? undefined : beforePath)
  const empty = ({ totals }: Usage) =>
    totals.count === '0' ? html`<${NothingHere} what="No usage in this period." />` : undefined
  const totalOf = ({ totals }: Usage) => (unit === '' ? totals.cost : ((totals as AnyRow).quantity ?? '0'))
  const measure = unit !== '' ? 'quantity' : chosen === undefined ? 'decisions' : 'count'
  const tools = html`<${MeasureField} names=${{ decisions: measureNames.decisions }} measure="decisions" unit=${unit} by=${by} whose=${whose} />
    <${Field} isTool class="small" label="Compare to" options=${comparisons} value=${params.get('compare') ?? ''} onValue=${(one: string) => setParams({ compare: one })} />`
  const listTools = html`<${Field} isTool class="small" label="By" options=${groups} value=${by} onValue=${(one: string) => setParams({ by: one })} />
    <a class="small" href=${csvPath} download="usage.csv">CSV</a>`
  const title = `${isOwn ? 'Your usage' : 'Usage'}${isAbove ? ', all levels' : ''}, ${label}`
  return html`
    <${Panel} title=${title} asked=${chart} path=${chartPath} rows=${14} empty=${empty} tools=${tools}>
      ${(data: Usage) => html`<div class="stack">
        <div class="figures">
          <span class="figure"><b>${quantity(totalOf(data), currencyOf(data))}</b>${unit || 'units'} ${list.data !== undefined && html`<span class="quiet" title=${`vs ${previous?.label}`}>${change(list.data.totals.change)}</span>`}</span>
          ${unit === '' ? html`<span class="figure"><b>${count(data.totals.allowed)}</b>allowed</span><span class="figure"><b>${count(data.totals.denied)}</b>refused</span>` : html`<span class="figure"><b>${count(data.totals.count)}</b>records</span>`}
        </div>
        <${UsageChart} subject=${id} usage=${data} title=${`${unit || 'Decisions'} of ${id}, ${label}`} measure=${measure} unit=${unit} before=${before.data} beforeLabel=${chosen?.label} />
      </div>`}
    <//>
    <${Panel} title="Breakdown" asked=${list} path=${listPath} rows=${6} tools=${listTools} empty=${empty}>
      ${(data: Usage) => html`<${Table} caption="Usage" columns=${usageColumns([by], previous?.label, totalOf(data), unit, currencyOf(data))} rows=${data.rows} keyOf=${(_: UsageRow, at: number) => String(at)} />`}
    <//>
  `
}
