import type { Reach } from '@weir/core/usage/reach.ts'

/**
 * The condition that keeps a query within a caller's reach, with the values of its parameters: the one place where
 * reach becomes SQL. The list is a parameter, so that no name in it is read as SQL; an empty one matches no row.
 *
 * @param parents the column with the subject's ancestors, of tables that have it: else only the subjects' own rows
 */
export function withinReach(
  { subjects, hasTrees }: Reach,
  column: string,
  parents?: string,
): { readonly sql: string; readonly params: Readonly<Record<string, unknown>> } {
  if (subjects === undefined) return { sql: 'true', params: {} }
  const own = `${column} IN {reach:Array(String)}`
  const isBelow = parents === undefined || !hasTrees ? undefined : `hasAny(${parents}, {reach:Array(String)})`
  return { sql: isBelow === undefined ? own : `(${own} OR ${isBelow})`, params: { reach: subjects } }
}

/** The condition that a column is within a span of time, whose ends are the parameters `from` and `to`. */
export const withinTime = (column: string): string =>
  `${column} >= fromUnixTimestamp64Milli({from:Int64}) AND ${column} < fromUnixTimestamp64Milli({to:Int64})`
