import type { Quote, QuoteLine, Spend } from '@weir/api/money.ts'
import { count, money } from '@weir/core/format.ts'
import { pathOf, useAnswer } from '../api.ts'
import { type Children, html } from '../html.ts'
import { Panel } from './panel.ts'
import { type Column, Table } from './table.ts'
import { Time } from './words.ts'

const steps = ({ tiers, mode, per }: QuoteLine) =>
  tiers
    .map(
      ({ quantity, packages, unit_amount: unit, flat_amount: flat }) =>
        `${count(packages ?? quantity)} × ${unit}${per === undefined ? '' : ` per ${count(per)}`}${flat === '0' ? '' : ` + ${flat}`}`,
    )
    .join(mode === 'volume' ? '' : ' + ')

/** A line, or what else comes to the total, which has a name and an amount alone. */
type Row = Pick<QuoteLine, 'name' | 'amount'> | QuoteLine

const ofLine = (cell: (line: QuoteLine) => Children) => (row: Row) => ('measure' in row ? cell(row) : '')
const columns: readonly Column<Row>[] = [
  { name: 'Line', isPlain: true, cell: ({ name }) => name },
  { name: 'Counted', isNumber: true, cell: ofLine(({ quantity, measure }) => `${count(quantity)} ${measure}`) },
  { name: 'Included', isNumber: true, isMinor: true, cell: ofLine(({ included }) => count(included)) },
  { name: 'How', isMinor: true, cell: ofLine((line) => html`<span class="quiet">${steps(line)}</span>`) },
  { name: 'Amount', isNumber: true, cell: ({ amount }) => money(amount) },
]

/** How a total comes about. */
export function QuoteTable({ quote }: { readonly quote: Quote }) {
  const more = [
    { name: 'flat, each month', amount: quote.flat },
    { name: 'up to the minimum', amount: quote.minimum_added },
  ]
  const rows = [...quote.lines, ...more.filter(({ amount }) => Number(amount) !== 0)]
  return html`<div class="stack">
    <${Table} caption="Lines" columns=${columns} rows=${rows} keyOf=${({ name }: Row, at: number) => `${at} ${name}`} />
    <p class="total">Total <b>${money(quote.total)} ${quote.currency}</b></p>
  </div>`
}

/** What the running month of a subject costs so far, and will; nothing where it has no price list. */
export function RunningMonth({ id }: { readonly id: string }) {
  const question = { price: 'true', by: 'subject', step: 'total', period: 'current', subject: id, numbers: 'text' }
  const priced = useAnswer<{ rows: readonly { amount: string | null }[] }>(pathOf('/v1/usage', question))
  const isPriced = priced.data?.rows.some(({ amount }) => amount !== null) === true
  const path = pathOf('/v1/spend', { subject: id })
  const answered = useAnswer<Spend>(isPriced ? path : undefined)
  const asked = priced.error === undefined ? answered : { ...answered, error: priced.error, again: priced.again }
  if (priced.data !== undefined && !isPriced) return null
  return html`<${Panel} title="This month so far" asked=${asked} path=${path} rows=${5}>
    ${({ period, quote, forecast }: Spend) => html`<div class="stack">
      <div class="figures">
        <span class="figure"><b>${money(quote.total)}</b>${quote.currency} so far</span>
        ${forecast !== undefined && html`<span class="figure"><b>${money(forecast.total)}</b>${forecast.currency} forecast</span>`}
      </div>
      <p class="quiet small"><${Time} at=${period.from} zone=${period.time_zone} /> to <${Time} at=${period.to} zone=${period.time_zone} />, ${period.time_zone}.</p>
      <${QuoteTable} quote=${quote} />
    </div>`}
  <//>`
}
