import type { UsageRow } from '@weir/api/usage.ts'
import { change, count, counted, percent } from '../format.ts'
import { html } from '../html.ts'
import { hrefOf } from '../location.ts'
import { columnNames } from './filters.ts'
import type { Column } from './table.ts'
import { Subject, valueName } from './words.ts'

/** What is said of a group that is divided below. */
const All = ({ of = '', by }: { readonly of?: string; readonly by: string }) =>
  of === '' ? 'all' : html`<a href=${hrefOf('/usage', { subject: of, by })}>all</a>`

/** The columns of grouped usage. */
export function usageColumns(by: readonly string[], hasChange: boolean, total: string): Column<UsageRow>[] {
  const [first, second = ''] = by
  const cell = (name: string) => (row: UsageRow) => {
    if (row.other === true)
      return name === first ? html`<span class="quiet">${counted(Number(row.groups), 'other')}</span>` : ''
    // What a group divides into stands below it, without its name.
    if (name === first && row[second as 'route'] !== undefined) return ''
    const value = row[name as 'subject']
    if (value === undefined) return html`<${All} of=${row.subject} by=${name} />`
    if (name === 'subject') return html`<${Subject} id=${value} />`
    return value === '' ? html`<span class="quiet">none</span>` : valueName(name, value)
  }
  return [
    ...by.map((name) => ({ name: columnNames[name] ?? name, cell: cell(name), isPlain: true })),
    { name: 'Units', isNumber: true, order: '-cost', cell: ({ cost }) => count(cost) },
    { name: 'Share', isNumber: true, isMinor: true, cell: ({ cost }) => percent(Number(cost), Number(total)) },
    ...(hasChange
      ? [{ name: '± before', isNumber: true, order: '-change', cell: (row: UsageRow) => change(row.change) }]
      : []),
    { name: 'Decisions', isNumber: true, order: '-count', cell: ({ count: all }) => count(all) },
    { name: 'Refused', isNumber: true, order: '-denied', cell: ({ denied }) => count(denied) },
  ]
}
