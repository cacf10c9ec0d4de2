import type { MonthSpend } from '@weir/api/money.ts'
import { change, counted, dateOf, money } from '@weir/core/format.ts'
import { pathOf, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { setParams, useLocation, zoneNow } from '../location.ts'
import { Field } from '../parts/field.ts'
import { Panel } from '../parts/panel.ts'
import { monthOf } from '../parts/span-range.ts'
import { type Column, Table } from '../parts/table.ts'
import { Tabs } from '../parts/tabs.ts'
import { Subject } from '../parts/words.ts'

export const spendTabs = { '/spend': 'Spend', '/prices': 'Price lists' }

/** Months that are offered; the address takes any. */
const offered = 13
function months(): Readonly<Record<string, string>> {
  const today = dateOf(Date.now(), zoneNow())
  const all = Array.from({ length: offered }, (_, at) => monthOf(today, -at).slice(0, 7))
  const name = (month: string) =>
    new Date(`${month}-01`).toLocaleDateString('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' })
  return Object.fromEntries(
    all.map((month, at) => [at === 0 ? '' : month, `${name(month)}${at === 0 ? ', so far' : ''}`]),
  )
}

type Row = MonthSpend['rows'][number]
const columns = (isRunning: boolean): readonly Column<Row>[] => [
  { name: 'Subject', isPlain: true, cell: ({ subject }) => html`<${Subject} id=${subject} />` },
  { name: 'Plan', isMinor: true, cell: ({ plan }) => plan },
  { name: 'Amount', isNumber: true, cell: ({ amount, currency }) => html`<b>${money(amount)}</b> ${currency}` },
  { name: 'Previous month', isNumber: true, cell: ({ previous }) => money(previous) },
  { name: 'Change', isNumber: true, cell: (row) => change(row.change) },
  ...(isRunning
    ? [{ name: 'Forecast', isNumber: true, cell: ({ forecast }: Row) => (forecast === null ? '–' : money(forecast)) }]
    : []),
  { name: 'Time zone', isMinor: true, cell: ({ time_zone: zone }) => zone },
]

/** What a month costs every customer, each in its own zone. */
export function SpendPage() {
  const period = useLocation().params.get('period') ?? ''
  const path = pathOf('/v1/spend/month', { period })
  const asked = useAnswer<MonthSpend>(path)
  const empty = ({ rows }: MonthSpend) => (rows.length === 0 ? 'No subject has a price list.' : undefined)
  const tools = html`<${Field} isTool label="Month" options=${months()} value=${period} onValue=${(one: string) => setParams({ period: one })} />
    <a class="button" href=${pathOf('/v1/spend/month', { period: period || dateOf(Date.now(), zoneNow()).slice(0, 7), format: 'csv' })} download>Export CSV</a>`
  return html`
    <h1>Spend</h1>
    <${Tabs} of=${spendTabs} label="Spend" />
    <${Panel} title="Spend by customer" asked=${asked} path=${path} rows=${12} empty=${empty} tools=${tools}>
      ${({ totals, rows, left_out: more }: MonthSpend) => html`<div class="stack">
        <div class="figures">${totals.map(
          (one) =>
            html`<span class="figure" key=${one.currency}><b>${money(one.amount)}</b>${one.currency} <span class="quiet">${change(one.change)}</span>${one.forecast !== null && html` <span class="quiet">forecast ${money(one.forecast)}</span>`}</span>`,
        )}</div>
        <${Table} caption="Spend" columns=${columns(rows.some(({ forecast }) => forecast !== null))} rows=${rows} keyOf=${({ subject }: Row) => subject} />
        ${more > 0 && html`<p class="quiet">${counted(more, 'more customer')}: export the CSV for all.</p>`}
      </div>`}
    <//>
  `
}
