import { printable } from '@weir/core/printable.ts'

/** Formats rows as a table, each column as wide as its widest text; the last column is not padded. */
export function textTable(cells: readonly (readonly string[])[]): string {
  const rows = cells.map((row) => row.map(printable))
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map((row) =>
      row
        .map((text, column) => text.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Returns lines as they may be printed: what a terminal would obey, or people not see, is escaped. Harmless twice. */
export const harmless = (lines: string): string => lines.split('\n').map(printable).join('\n')
