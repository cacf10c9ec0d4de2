/** Objects as ClickHouse reads them from an insert, each on a line of its own. */
export const linesOf = (rows: readonly object[]): Buffer =>
  Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
