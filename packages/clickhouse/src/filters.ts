import type { Values } from '@weir/core/usage/usage-query.ts'

/** What a question leaves out. */
interface Filters {
  readonly only: Values<string>
  readonly except: Values<string>
  readonly subjectPrefix: string | undefined
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
      sql.push(`AND ${columnOf(name)} ${kind === 'only' ? 'IN' : 'NOT IN'} {${kind}_${name}:Array(String)}`)
      params[`${kind}_${name}`] = values
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
