import { type Children, html } from '../html.ts'

export interface Column<Row> {
  readonly name: string
  readonly cell: (row: Row) => Children
  readonly isNumber?: boolean
}

/** Rows of a kind; on narrow screens each is a card. */
export function Table<Row>(props: {
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row, at: number) => string
}) {
  const { caption, columns, rows, keyOf } = props
  return html`<div class="scroll">
    <table class="cards">
      <caption class="hidden">${caption}</caption>
      <thead>
        <tr>${columns.map(({ name, isNumber }) => html`<th scope="col" class=${isNumber ? 'number' : ''}>${name}</th>`)}</tr>
      </thead>
      <tbody>
        ${rows.map(
          (row, at) =>
            html`<tr key=${keyOf(row, at)}>
              ${columns.map(
                ({ name, cell, isNumber }) =>
                  html`<td data-name=${name} class=${isNumber ? 'number' : ''}>${cell(row)}</td>`,
              )}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`
}

/** Leads to the next page of a list, and back to its first. */
export function Pages(props: {
  readonly after: string | null
  readonly next: string | null
  readonly onPage: (after: string | undefined) => void
}) {
  const { after, next, onPage } = props
  if (after === null && next === null) return null
  return html`<div class="row">
    <button disabled=${after === null} onClick=${() => onPage(undefined)}>First</button>
    <button disabled=${next === null} onClick=${() => onPage(next ?? undefined)}>Next</button>
  </div>`
}
