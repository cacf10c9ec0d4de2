/** Rows as ClickHouse reads them: JSON objects, a line each. */
export function linesOf(rows: readonly object[]): Buffer {
  return Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
}
