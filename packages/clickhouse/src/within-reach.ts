import type { Reach } from '@weir/core/usage/reach.ts'

/**
 * The condition that keeps a query within a caller's reach, with the values of its parameters: the one place where
 * reach becomes SQL. The list is a parameter, so that no name in it is read as SQL; an empty one matches no row.
 */
export function withinReach(
  { subjects }: Reach,
  column: string,
): { readonly sql: string; readonly params: Readonly<Record<string, unknown>> } {
  if (subjects === undefined) return { sql: 'true', params: {} }
  return { sql: `${column} IN {reach:Array(String)}`, params: { reach: subjects } }
}

/** The condition that a column is within a span of time, whose ends are the parameters `from` and `to`. */
export const withinTime = (column: string): string =>
  `${column} >= fromUnixTimestamp64Milli({from:Int64}) AND ${column} < fromUnixTimestamp64Milli({to:Int64})`
