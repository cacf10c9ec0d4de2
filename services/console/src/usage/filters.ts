import type { Values } from '@weir/api/query/read-parameters.ts'
import type { RollupQuery } from '@weir/api/query/usage-query.ts'
import type { Reach } from '@weir/core/usage/reach.ts'

/** A column's name within the SQL of a question. That of a label may have dots and dashes, which no alias has. */
export const nameInSql = (name: string): string =>
  name.startsWith('dimension.') ? `label_${Buffer.from(name).toString('hex')}` : name

/** What a question leaves out. */
type Filters = Pick<RollupQuery<string>, 'only' | 'except' | 'subjectPrefix'>

/** A subject's ancestors as their reader sees them: a caller who is limited to subjects up to these. */
export const seenParents = ({ isOwn }: Reach, all: string): string =>
  isOwn ? `arraySlice(${all}, 1, arrayFirstIndex(name -> has({reach:Array(String)}, name), ${all}))` : all

/**
 * A column as its reader sees it. Callers who are limited to subjects see nothing of limits in shadow: `denied_by` of
 * an allowed request names one that would have refused it, or one that degraded it, and the limits of a decision do not
 * say which of them are in shadow. So of the limits that a request met they see the one that refused it, and of a
 * subject's ancestors those up to their own. `met_limit` is a list, which has an empty name where there is none.
 */
export function seenColumn(name: string, reach: Reach, of: (name: string) => string): string {
  const { isOwn } = reach
  if (name === 'met_limit') {
    if (isOwn) return `[if(${of('outcome')} = 'deny', toString(${of('denied_by')}), '')]`
    const names = of('met_limits')
    return `if(empty(${names}), [''], arrayDistinct(arrayMap(name -> toString(name), ${names})))`
  }
  if (name === 'parent' || name === 'parents') {
    const seen = seenParents(reach, of('parents'))
    return name === 'parent' ? `${seen}[1]` : `toJSONString(${seen})`
  }
  if (isOwn && name === 'denied_by') return `if(${of('outcome')} = 'deny', ${of('denied_by')}, '')`
  if (isOwn && name === 'reason') return `if(${of('mode')} = 'shadow', 'ok', ${of('reason')})`
  return isOwn && name === 'mode' ? "'enforce'" : of(name)
}

/**
 * The conditions of a question's filters. They compare what the caller would see in the column: a filter tells nothing
 * that the answer does not. The names of the parameters are of a closed list, as those of the columns are.
 */
export function filtersOf(columnOf: (name: string) => string, { only, except, subjectPrefix }: Filters) {
  const sql: string[] = []
  const params: Record<string, unknown> = {}
  const add = (filters: Values<string>, kind: 'only' | 'except') => {
    for (const [name, values] of Object.entries(filters)) {
      const given = `{${kind}_${nameInSql(name)}:Array(String)}`
      const isMet = name === 'met_limit' ? `hasAny(${columnOf(name)}, ${given})` : `${columnOf(name)} IN ${given}`
      sql.push(`AND ${kind === 'only' ? isMet : `NOT (${isMet})`}`)
      params[`${kind}_${nameInSql(name)}`] = values
    }
  }
  add(only, 'only')
  add(except, 'except')
  if (subjectPrefix !== undefined) {
    sql.push(`AND startsWith(${columnOf('subject')}, {subject_prefix:String})`)
    params.subject_prefix = subjectPrefix
  }
  return { sql, params }
}
