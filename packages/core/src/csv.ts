/** What a column of a CSV file has: text that a person may open in a spreadsheet, or what is written as it is. */
export type CsvColumns = Readonly<Record<string, 'text' | 'exact'>>

/** Spreadsheets run what begins so as a formula; subjects of tokens and routes of callers are not of our making. */
const formulaStart = /^[=+\-@\t\r\0]/

function cellOf(value: string, kind: CsvColumns[string]): string {
  const safe = kind === 'text' && formulaStart.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/**
 * Writes CSV by RFC 4180, with a header line. Text that a spreadsheet would run gets a `'` before it, numbers and
 * names for programs never; what a row does not have is an empty cell.
 */
export function csvOf(columns: CsvColumns, rows: readonly Readonly<Record<string, string>>[]): string {
  const entries = Object.entries(columns)
  const lines = rows.map((row) => entries.map(([name, kind]) => cellOf(row[name] ?? '', kind)))
  return [Object.keys(columns), ...lines].map((cells) => `${cells.join(',')}\r\n`).join('')
}
