/** The fields of each line of CSV, by RFC 4180. */
export function readCsv(csv: string): string[][] {
  const lines: string[][] = [[]]
  for (const [, quoted, plain = '', end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r\n|$)/g)) {
    if (end !== '' || quoted !== undefined || plain !== '') lines.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain)
    if (end === '\r\n') lines.push([])
  }
  return lines.slice(0, -1)
}
