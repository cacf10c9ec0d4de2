import { isWord, tokens } from './tokens.ts'

/**
 * What the setting `log_comment` of a query begins with, before the id that the client gave it: the engine numbers its
 * queries by itself.
 */
export const queryIdMark = 'query_id:'

const comment = "Settings['log_comment']"
const clientQueryId = `if(startsWith(${comment}, '${queryIdMark}'), substring(${comment}, ${queryIdMark.length + 1}), query_id)`
const processes = `(SELECT * REPLACE (${clientQueryId} AS query_id) FROM system.processes)`

/** Makes a statement read `system.processes` with the ids that clients know, as they see it on a server. */
export function withClientQueryIds(sql: string): string {
  if (!sql.includes('processes')) return sql
  const all = [...tokens(sql)]
  let out = ''
  let copied = 0
  for (const [index, token] of all.entries()) {
    const dot = all[index + 1]
    const table = all[index + 2]
    if (token.text !== 'system' || dot?.text !== '.' || table?.text !== 'processes') continue
    // A column qualified by the table's name needs the table itself.
    if (all[index + 3]?.text === '.') return sql
    out += `${sql.slice(copied, token.start)}${processes}`
    copied = table.end
  }
  return out + sql.slice(copied)
}

/** Makes `KILL QUERY WHERE query_id = …` compare with the id that the client knows. */
export function killingByClientQueryId(sql: string): string {
  let out = ''
  let copied = 0
  for (const token of tokens(sql)) {
    if (!isWord(token, 'QUERY_ID')) continue
    out += `${sql.slice(copied, token.start)}(${clientQueryId})`
    copied = token.end
  }
  return out + sql.slice(copied)
}
