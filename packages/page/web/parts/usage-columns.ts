import type { UnitUsage, UsageRow } from '@weir/api/usage.ts'
import { change, count, counted, percent, quantity } from '@weir/core/format.ts'
import { html } from '../html.ts'
import { hrefOf } from '../location.ts'
import { may } from '../session.ts'
import { BlockCaller, type BlockedBy } from './block-caller.ts'
import { partOf } from './export.ts'
import { columnName, Facet } from './filters.ts'
import { actionsOf, type Column } from './table.ts'
import { Subject, valueName } from './words.ts'

/** A row of usage, or one of usage by unit, which has a `quantity` instead of the other sums. */
export type AnyRow = UsageRow & { readonly quantity?: string }

/** The currency of an answer's quantities, if they are money. */
export const currencyOf = (usage: object | undefined): string | undefined =>
  (usage as Partial<UnitUsage> | undefined)?.currency

/** What is said of a group that is divided below. */
const All = ({ of, by, unit }: Readonly<Record<'of' | 'by' | 'unit', string>>) =>
  of === '' ? 'all' : html`<a href=${hrefOf('/usage', { subject: of, by, unit })}>all</a>`

const isBlockable = (name: string | undefined): name is BlockedBy =>
  name === 'ip' || name === 'subject' || name === 'key_id'
const blockColumn = (by: BlockedBy) =>
  actionsOf<AnyRow>((row) => {
    const value = row[by] ?? ''
    return value !== '' && !value.startsWith('_') && html`<${BlockCaller} by=${by} value=${value} label="Block" />`
  })

/** The columns of grouped usage; `compared`: the days that units are compared with; `unit`: for its quantities. */
export function usageColumns(
  by: readonly string[],
  compared: string | undefined,
  total: string,
  unit = '',
  currency?: string,
): Column<AnyRow>[] {
  const [first, second = ''] = by
  const sum = unit === '' ? 'cost' : 'quantity'
  const cell = (name: string) => (row: AnyRow) => {
    if (row.other === true)
      return name === first ? html`<span class="quiet">${counted(Number(row.groups), 'other')}</span>` : ''
    // What a group divides into stands below it, without its name.
    if (name === first && row[second as 'route'] !== undefined) return ''
    const value = row[name as 'subject']
    if (value === undefined) return html`<${All} of=${row.subject ?? ''} by=${name} unit=${unit} />`
    if ((name === 'subject' || name === 'parent') && value !== '') return html`<${Subject} id=${value} />`
    return value === ''
      ? html`<span class="quiet">none</span>`
      : html`<${Facet} name=${name} value=${value} text=${valueName(name, value)} />`
  }
  const columns: Column<AnyRow>[] = [
    ...by.map((name) => ({
      name: columnName(name),
      cell: cell(name),
      csv: (row: AnyRow) => (row.other === true ? `other (${row.groups})` : row[name as 'subject']),
      isPlain: true,
    })),
    {
      name: unit || 'Units',
      isNumber: true,
      order: `-${sum}`,
      cell: (row) => quantity(row[sum], currency),
      csv: (row) => row[sum],
    },
    {
      name: 'Share',
      isNumber: true,
      isMinor: true,
      cell: (row) => percent(Number(row[sum]), Number(total)),
      csv: (row) => partOf(Number(row[sum]), Number(total)),
    },
    ...(compared !== undefined
      ? [
          {
            name: `± ${compared}`,
            isNumber: true,
            order: '-change',
            cell: (row: AnyRow) => change(row.change),
            csv: (row: AnyRow) => row.change,
          },
        ]
      : []),
    {
      name: unit === '' ? 'Decisions' : 'Records',
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
  return unit === '' ? columns : columns.filter(({ name }) => name !== 'Refused')
}
