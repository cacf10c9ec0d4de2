/** Formats rows as a table, each column as wide as its widest text; the last column is not padded. */
export function textTable(rows: readonly (readonly string[])[]): string {
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

/** Returns a name of a caller's as it may be printed: what is no printable character is shown as JSON shows it. */
export const printable = (name: string): string => (/^\P{C}*$/u.test(name) ? name : JSON.stringify(name))
