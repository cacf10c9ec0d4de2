import { csvOf } from '@weir/core/csv.ts'
import { html } from '../html.ts'
import type { Column } from './table.ts'

interface ExportProps<Row> {
  /** The file's, without its ending; what no file name has is left out. */
  readonly name: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
}

/** A part of a whole as a file has it; of nothing there is none. */
export const partOf = (part: number, of: number): string => (of === 0 ? '' : (part / of).toFixed(4))

/** Saves a table as it stands on the screen: its rows, columns and order. */
export function ExportCsv<Row>({ name, columns, rows }: ExportProps<Row>) {
  const shown = columns.filter(({ csv }) => csv !== undefined)
  const save = () => {
    const kinds = Object.fromEntries(shown.map((one) => [one.name, one.isNumber === true ? 'exact' : 'text'] as const))
    const cells = rows.map((row) => Object.fromEntries(shown.map((one) => [one.name, String(one.csv?.(row) ?? '')])))
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob([csvOf(kinds, cells)], { type: 'text/csv' }))
    link.download = `${name.replaceAll(/[^\w]+/g, '-')}.csv`
    link.click()
    URL.revokeObjectURL(link.href)
  }
  return html`<button disabled=${rows.length === 0} onClick=${save}>Export CSV</button>`
}
