import type { Usage, UsageRow } from '../answers.ts'
import { pathOf, useAnswer } from '../api.ts'
import { change, count, percent } from '../format.ts'
import { html } from '../html.ts'
import { Panel } from '../parts/panel.ts'
import { useSpan } from '../parts/span.ts'
import { type Column, Table } from '../parts/table.ts'
import { Subject } from '../parts/words.ts'
import { hrefOf, setParams, usePlace } from '../place.ts'
import { UsageChart } from './overview.ts'

const dimensions = ['subject', 'route', 'plan', 'key_id', 'method', 'outcome', 'denied_by'] as const
type Dimension = (typeof dimensions)[number]
const isDimension = (name: string): name is Dimension => dimensions.some((one) => one === name)
const names: Readonly<Record<Dimension, string>> = {
  ...{ subject: 'Subject', route: 'Route', plan: 'Plan', key_id: 'Key', method: 'Method' },
  ...{ outcome: 'Outcome', denied_by: 'Refused by' },
}
const orders = { '-cost': 'units', '-count': 'decisions', '-denied': 'refusals' }

/** What the address asks: who, by what, the largest how many. */
function useUsageQuestion(fixed: Readonly<Record<string, string>> = {}) {
  const { params } = usePlace()
  const { from, zone } = useSpan()
  const by = (params.get('by') ?? 'subject').split(',').filter(isDimension)
  const filters = Object.fromEntries(dimensions.map((name) => [name, params.getAll(name)]))
  const given = {
    ...{ from, time_zone: zone, numbers: 'text' },
    ...filters,
    ...fixed,
  }
  const order = params.get('order') ?? '-cost'
  const ranking = { top: params.get('top') ?? '20', order }
  const compare = params.get('compare') === 'previous' ? { compare: 'previous' } : {}
  return { by, order, given, ranking, compare, after: params.get('after') }
}

function Filters({ by, order }: { readonly by: readonly string[]; readonly order: string }) {
  const { params } = usePlace()
  const value = (event: Event) => (event.currentTarget as HTMLSelectElement).value
  const shown = dimensions.flatMap((name) => params.getAll(name).map((one) => ({ name, one })))
  const without = ({ name, one }: { name: Dimension; one: string }) => {
    const rest = params.getAll(name).filter((other) => other !== one)
    const url = new URLSearchParams(params)
    url.delete(name)
    for (const other of rest) url.append(name, other)
    return `/usage?${url}`
  }
  const add = (event: Event) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    setParams({ [String(form.get('name'))]: String(form.get('value')), after: undefined })
    ;(event.currentTarget as HTMLFormElement).reset()
  }
  return html`<div class="row">
    <label>by
      <select value=${by.join(',')} onChange=${(event: Event) => setParams({ by: value(event), after: undefined })}>
        ${[...dimensions, 'subject,route', 'route,denied_by'].map(
          (one) =>
            html`<option value=${one}>${one
              .split(',')
              .map((name) => names[name as Dimension])
              .join(' and ')}</option>`,
        )}
      </select>
    </label>
    <label>the most
      <select value=${order} onChange=${(event: Event) => setParams({ order: value(event) })}>
        ${Object.entries(orders).map(([one, name]) => html`<option value=${one}>${name}</option>`)}
      </select>
    </label>
    <label>
      <input type="checkbox" checked=${params.get('compare') === 'previous'} onChange=${(event: Event) => setParams({ compare: (event.currentTarget as HTMLInputElement).checked ? 'previous' : undefined })} />
      compare with before
    </label>
    <form class="row" onSubmit=${add}>
      <select name="name" aria-label="Filter by">${dimensions.map((name) => html`<option value=${name}>${names[name]}</option>`)}</select>
      <input name="value" required placeholder="is exactly…" aria-label="Value of the filter" />
      <button type="submit">Add filter</button>
    </form>
    ${shown.map((filter) => html`<a class="button small" href=${without(filter)} title="Take this filter away">${names[filter.name]}: ${filter.one} ✕</a>`)}
  </div>`
}

/** The columns of grouped usage. */
export function usageColumns(by: readonly string[], hasChange: boolean, total: string): Column<UsageRow>[] {
  const cell = (name: Dimension) => (row: UsageRow) => {
    if (row.other === true) return name === by[0] ? html`<span class="quiet">${count(row.groups)} others</span>` : ''
    const value = row[name] ?? ''
    if (name === 'subject') return html`<${Subject} id=${value} />`
    return value === '' ? html`<span class="quiet">none</span>` : value
  }
  return [
    ...by.filter(isDimension).map((name) => ({ name: names[name], cell: cell(name) })),
    { name: 'Units', isNumber: true, cell: ({ cost }) => count(cost) },
    { name: 'Share', isNumber: true, cell: ({ cost }) => percent(Number(cost), Number(total)) },
    ...(hasChange ? [{ name: '± before', isNumber: true, cell: (row: UsageRow) => change(row.change) }] : []),
    { name: 'Decisions', isNumber: true, cell: ({ count: all }) => count(all) },
    { name: 'Refused', isNumber: true, cell: ({ denied }) => count(denied) },
  ]
}

export function UsagePage() {
  const { label, step } = useSpan()
  const { by, order, given, ranking, compare } = useUsageQuestion()
  const chartPath = pathOf('/v1/usage', { ...given, step, fill: 'zero' })
  const listPath = pathOf('/v1/usage', { ...given, step: 'total', by: by.join(','), ...ranking, ...compare })
  const csvPath = pathOf('/v1/usage', { ...given, numbers: '', step: 'total', by: by.join(','), format: 'csv' })
  const chart = useAnswer<Usage>(chartPath)
  const list = useAnswer<Usage>(listPath)
  const nothing = ({ totals }: Usage) =>
    totals.count === '0'
      ? html`Nothing in this span with these filters. <a href=${hrefOf('/usage', { span: '365d' })}>Look at a whole year</a>`
      : undefined
  return html`
    <div class="head"><h1>Usage</h1><a class="button" href=${csvPath} download="usage.csv">CSV of all</a></div>
    <${Filters} by=${by} order=${order} />
    <${Panel} title=${`Decisions, ${label}`} asked=${chart} path=${chartPath} rows=${9} empty=${nothing}>
      ${(data: Usage) => html`<${UsageChart} usage=${data} title=${`Decisions, ${label}`} />`}
    <//>
    <${Panel} title="Who, and how much" asked=${list} path=${listPath} rows=${10} empty=${nothing}>
      ${(data: Usage) =>
        html`<div class="stack">
          <${Table} caption="Usage by group" columns=${usageColumns(by, compare.compare !== undefined, data.totals.cost)} rows=${data.rows} keyOf=${(row: UsageRow, at: number) => `${at} ${by.map((name) => row[name as Dimension]).join(' ')}`} />
          <p class="quiet">In all ${count(data.totals.cost)} units in ${count(data.totals.count)} decisions, ${count(data.totals.denied)} of them refused.</p>
        </div>`}
    <//>
  `
}
