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

/** Control characters, those that turn the direction of text, and halves of characters. */
const harmful = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
/** As JSON writes them: `\u001b`. */
const escaped = (text: string) =>
  Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')

/** Returns lines as they may be printed: what a terminal would obey, or people not see, is escaped. Harmless twice. */
export const harmless = (lines: string): string =>
  lines.replaceAll(harmful, (found) => (found === '\n' ? found : escaped(found)))

/** Returns a name of a caller's as it may be printed within a line. */
export const printable = (name: string): string => name.replaceAll(harmful, escaped)
