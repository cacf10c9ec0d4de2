import type { Page } from '@weir/api/schema.ts'
import { type Children, html } from '../html.ts'
import { setParams, useLocation } from '../location.ts'
import { Panel, type PanelProps } from './panel.ts'

export interface Column<Row> {
  readonly name: string
  readonly cell: (row: Row) => Children
  /** What a file has of it; a column without is left out there. */
  readonly csv?: (row: Row) => string | number | null | undefined
  readonly isNumber?: boolean
  /** Left out of the cards of narrow screens. */
  readonly isMinor?: boolean
  /** In cards without its name before it: what it says is clear by itself. */
  readonly isPlain?: boolean
  /** The order of the question that this column is for: a click sorts by it. */
  readonly order?: string
}

export interface TableProps<Row> {
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row, at: number) => string
  /** The order that is in force, and what chooses another. */
  readonly order?: string
  readonly onOrder?: (order: string) => void
}

/** The column of what can be done with a row. */
export const actionsOf = <Row>(actions: (row: Row) => Children): Column<Row> => ({
  name: '',
  isPlain: true,
  cell: (row) => html`<div class="row end">${actions(row)}</div>`,
})

const classOf = <Row>({ isNumber = false, isMinor = false, isPlain = false }: Column<Row>) =>
  [isNumber && 'number', isMinor && 'minor', isPlain && 'plain'].filter(Boolean).join(' ')

function Head<Row>({
  column,
  order,
  onOrder,
}: Pick<TableProps<Row>, 'order' | 'onOrder'> & { readonly column: Column<Row> }) {
  const isSorted = column.order !== undefined && column.order === order
  const name =
    column.order === undefined || onOrder === undefined
      ? column.name
      : html`<button class="bare" title="Sort" onClick=${() => onOrder(column.order ?? '')}>${column.name}${isSorted && ' ↓'}</button>`
  return html`<th scope="col" class=${classOf(column)} aria-sort=${isSorted ? 'descending' : undefined}>${name}</th>`
}

/** Rows of a kind; on narrow screens each is a card. The keys j and k walk along what the rows lead to. */
export function Table<Row>({ caption, columns, rows, keyOf, order, onOrder }: TableProps<Row>) {
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${caption}>
    <table class="cards">
      <caption class="hidden">${caption}</caption>
      <thead><tr>${columns.map((column) => html`<${Head} key=${column.name} column=${column} order=${order} onOrder=${onOrder} />`)}</tr></thead>
      <tbody>
        ${rows.map(
          (row, at) =>
            html`<tr key=${keyOf(row, at)}>
              ${columns.map((column) => html`<td data-name=${column.name} class=${classOf(column)}>${column.cell(row)}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`
}

/** A list of the API as a panel. */
export function ListPanel<Row>(
  props: Omit<PanelProps<Page<Row>>, 'empty' | 'children'> &
    Omit<TableProps<Row>, 'rows'> & {
      /** What is said of an empty list. */
      readonly none: Children
    },
) {
  const { none, caption, columns, keyOf, ...panel } = props
  return html`<${Panel} ...${panel} empty=${({ items }: Page<Row>) => (items.length === 0 ? none : undefined)}>
    ${({ items, next }: Page<Row>) => html`<${PagedTable} caption=${caption} columns=${columns} rows=${items} next=${next} keyOf=${keyOf} />`}
  <//>`
}

/** Rows that come in pages, whose cursor is in the address. */
export function PagedTable<Row>({ next, ...table }: TableProps<Row> & { readonly next: string | null }) {
  const after = useLocation().params.get('after')
  return html`<div class="stack">
    <${Table} ...${table} />
    ${
      (after !== null || next !== null) &&
      html`<div class="row">
        <button disabled=${after === null} onClick=${() => setParams({ after: undefined })}>First</button>
        <button disabled=${next === null} onClick=${() => setParams({ after: next ?? undefined })}>Next</button>
      </div>`
    }
  </div>`
}
