import type { Quote } from '@weir/api/money.ts'
import type { Entity } from '@weir/api/policy.ts'
import type { Page } from '@weir/api/schema.ts'
import { count } from '@weir/core/format.ts'
import { useState } from 'preact/hooks'
import { pathOf, send, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { useLocation } from '../location.ts'
import { Action } from '../parts/dialog.ts'
import { Field } from '../parts/field.ts'
import { QuoteTable } from '../parts/quote.ts'
import { actionsOf, type Column, ListPanel, Table } from '../parts/table.ts'
import { Tabs } from '../parts/tabs.ts'
import { Part } from '../parts/words.ts'
import { spendTabs } from './spend.ts'

interface Tier {
  readonly up_to?: number
  readonly unit_amount: string
  readonly flat_amount?: string
}
interface Line {
  readonly name: string
  readonly measure: string
  readonly routes?: readonly string[]
  readonly included?: number
  readonly mode?: string
  readonly per?: number
  readonly round?: string
  readonly tiers: readonly Tier[]
}

const tierText = ({ up_to: to, unit_amount: unit, flat_amount: flat = '0' }: Tier) =>
  `${unit}${flat === '0' ? '' : ` and ${flat}`}${to === undefined ? '' : ` up to ${count(to)}`}`

const lineColumns: readonly Column<Line>[] = [
  { name: 'Line', isPlain: true, cell: ({ name }) => html`<b>${name}</b>` },
  { name: 'Measure', cell: ({ measure }) => measure },
  { name: 'Routes', isMinor: true, cell: ({ routes }) => routes?.join(', ') ?? 'all other routes' },
  { name: 'Included', isNumber: true, cell: ({ included = 0 }) => count(included) },
  {
    name: 'Prices',
    cell: ({ tiers, mode, per, round = 'up' }) => {
      const packages = per === undefined ? '' : `, per ${round === 'up' ? 'started' : 'full'} ${count(per)}`
      return `${tiers.map(tierText).join(', then ')}${packages}${mode === 'volume' ? ' (all at the last price)' : ''}`
    },
  },
]

/** What some use would cost, step by step. */
function QuoteOf({ name, lines }: { readonly name: string; readonly lines: readonly Line[] }) {
  const [given, setGiven] = useState<Readonly<Record<string, string>>>({})
  const run = () => {
    const usage = lines.map(({ name: line, measure, routes }) => ({
      ...(routes?.[0] === undefined ? {} : { route: routes[0] }),
      [measure]: Number(given[line] ?? 0),
    }))
    return send('POST', `/v1/prices/${encodeURIComponent(name)}/quote`, { usage })
  }
  const about = html`<p>Prices a month with ${name}:</p>
    ${lines.map(({ name: line, measure }) => html`<${Field} key=${line} label=${`${line}, ${measure}`} type="number" min="0" step="1" value=${given[line] ?? '0'} onValue=${(value: string) => setGiven({ ...given, [line]: value })} />`)}`
  return html`<${Action} label="Quote" scope="billing" about=${about} run=${run} said=${(quote: Quote) => html`<${QuoteTable} quote=${quote} />`} />`
}

const linesOf = ({ lines = [] }: Entity['body']) => lines as unknown as readonly Line[]

/** The price lists. */
export function PricesPage() {
  const path = pathOf('/v1/prices', { limit: '50', after: useLocation().params.get('after') ?? '' })
  const columns: readonly Column<Entity>[] = [
    { name: 'List', isPlain: true, cell: ({ name }) => html`<b><${Part} kind="prices" name=${name} /></b>` },
    {
      name: 'Monthly',
      isPlain: true,
      cell: ({ body }) =>
        `${String(body.flat ?? '0')} ${String(body.currency)}${body.minimum === undefined ? '' : `, at least ${String(body.minimum)}`}`,
    },
    {
      name: 'Lines',
      isPlain: true,
      cell: ({ name, body }) =>
        html`<${Table} caption=${`Lines of ${name}`} columns=${lineColumns} rows=${linesOf(body)} keyOf=${(line: Line) => line.name} />`,
    },
    actionsOf(({ name, body }) => html`<${QuoteOf} name=${name} lines=${linesOf(body)} />`),
  ]
  const none = html`No price list yet. Add one under <code>prices</code> in the policy.`
  return html`
    <h1>Prices</h1>
    <${Tabs} of=${spendTabs} label="Spend" />
    <${ListPanel} title="Price lists" asked=${useAnswer<Page<Entity>>(path)} path=${path} rows=${5} none=${none} caption="Price lists" columns=${columns} keyOf=${({ name }: Entity) => name} />
  `
}
