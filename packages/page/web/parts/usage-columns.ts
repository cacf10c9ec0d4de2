import type { UsageRow } from '@weir/api/usage.ts'
import { change, count, counted, percent } from '@weir/core/format.ts'
import { html } from '../html.ts'
import { hrefOf } from '../location.ts'
import { may } from '../session.ts'
import { BlockCaller, type BlockedBy } from './block-caller.ts'
import { partOf } from './export.ts'
import { columnNames, Facet } from './filters.ts'
import { actionsOf, type Column } from './table.ts'
import { Subject, valueName } from './words.ts'

/** What is said of a group that is divided below. */
const All = ({ of = '', by }: { readonly of?: string; readonly by: string }) =>
  of === '' ? 'all' : html`<a href=${hrefOf('/usage', { subject: of, by })}>all</a>`

const isBlockable = (name: string | undefined): name is BlockedBy =>
  name === 'ip' || name === 'subject' || name === 'key_id'
const blockColumn = (by: BlockedBy) =>
  actionsOf<UsageRow>((row) => {
    const value = row[by] ?? ''
    return value !== '' && !value.startsWith('_') && html`<${BlockCaller} by=${by} value=${value} label="Block" />`
  })

/** The columns of grouped usage; `compared`: the days that units are compared with. */
export function usageColumns(by: readonly string[], compared: string | undefined, total: string): Column<UsageRow>[] {
  const [first, second = ''] = by
  const cell = (name: string) => (row: UsageRow) => {
    if (row.other === true)
      return name === first ? html`<span class="quiet">${counted(Number(row.groups), 'other')}</span>` : ''
    // What a group divides into stands below it, without its name.
    if (name === first && row[second as 'route'] !== undefined) return ''
    const value = row[name as 'subject']
    if (value === undefined) return html`<${All} of=${row.subject} by=${name} />`
    if (name === 'subject') return html`<${Subject} id=${value} />`
    return value === ''
      ? html`<span class="quiet">none</span>`
      : html`<${Facet} name=${name} value=${value} text=${valueName(name, value)} />`
  }
  return [
    ...by.map((name) => ({
      name: columnNames[name] ?? name,
      cell: cell(name),
      csv: (row: UsageRow) => (row.other === true ? `other (${row.groups})` : row[name as 'subject']),
      isPlain: true,
    })),
    { name: 'Units', isNumber: true, order: '-cost', cell: ({ cost }) => count(cost), csv: ({ cost }) => cost },
    {
      name: 'Share',
      isNumber: true,
      isMinor: true,
      cell: ({ cost }) => percent(Number(cost), Number(total)),
      csv: ({ cost }) => partOf(Number(cost), Number(total)),
    },
    ...(compared !== undefined
      ? [
          {
            name: `± ${compared}`,
            isNumber: true,
            order: '-change',
            cell: (row: UsageRow) => change(row.change),
            csv: (row: UsageRow) => row.change,
          },
        ]
      : []),
    {
      name: 'Decisions',
      isNumber: true,
      order: '-count',
      cell: ({ count: all }) => count(all),
      csv: ({ count: all }) => all,
    },
    {
      name: 'Refused',
      isNumber: true,
      order: '-denied',
      cell: ({ denied }) => count(denied),
      csv: ({ denied }) => denied,
    },
    ...(isBlockable(first) && may('limits') ? [blockColumn(first)] : []),
  ]
}
