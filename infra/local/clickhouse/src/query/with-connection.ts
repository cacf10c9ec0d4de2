import type { Connection } from '../engine/connection.ts'
import type { Engine } from '../engine/engine.ts'
import { serverException } from '../engine/exception.ts'
import { queryIdSetting } from '../sql/query-ids.ts'
import { sqlName, sqlString } from '../sql/tokens.ts'
import { readRestoration, type SessionRequest, type Sessions } from './sessions.ts'

/** What a statement runs under. */
export interface Surroundings {
  readonly queryId: string
  readonly database: string | undefined
  readonly session: SessionRequest | undefined
  readonly settings: Readonly<Record<string, string>>
  readonly params: Readonly<Record<string, string>>
}

/** A result that must be held in memory ends here; formats that can be cut are streamed and have no end. */
const wholeResultBytesMax = 512 * 1024 ** 2

const fixedSettings = (queryId: string) => ({
  ...queryIdSetting(queryId),
  max_result_bytes: String(wholeResultBytesMax),
})

function prelude({ database, params }: Surroundings, settings: Readonly<Record<string, string>>): string {
  const values = [
    ...Object.entries(settings).map(([name, value]) => `${name} = ${sqlString(value)}`),
    ...Object.entries(params).map(([name, value]) => `param_${name} = ${sqlString(value)}`),
  ]
  const use = database === undefined ? [] : [`USE ${sqlName(database)}`]
  return [...use, ...(values.length === 0 ? [] : [`SET ${values.join(', ')}`])].join('; ')
}

async function inSession<T>(
  sessions: Sessions,
  request: SessionRequest,
  around: Surroundings,
  sql: string,
  use: (connection: Connection) => Promise<T>,
): Promise<T> {
  const { connection, paramNames, giveBack, end } = sessions.take(request)
  let restored = true
  try {
    const forgotten = [...paramNames].find((name) => !(name in around.params) && sql.includes(`{${name}:`))
    if (forgotten !== undefined) throw serverException(456, `Substitution \`${forgotten}\` is not set`)
    for (const name of Object.keys(around.params)) paramNames.add(name)
    const restoration = await readRestoration(connection, Object.keys(around.settings), around.database)
    try {
      await connection.query(prelude(around, { ...fixedSettings(around.queryId), ...around.settings }), 'Null')
      return await use(connection)
    } finally {
      restored = false
      if (restoration !== '') await connection.query(restoration, 'Null')
      restored = true
    }
  } finally {
    if (restored) giveBack()
    else end()
  }
}

/**
 * Runs `use` on a connection under these surroundings. Without a session that connection is new and closed afterwards,
 * so that no setting, parameter, database or temporary table of one request can reach another: there is nothing to
 * forget to put back. It costs half a millisecond. With a session, what came with the request is taken back after it.
 */
export async function withConnection<T>(
  server: { readonly engine: Engine; readonly sessions: Sessions },
  around: Surroundings,
  sql: string,
  use: (connection: Connection) => Promise<T>,
): Promise<T> {
  if (around.session !== undefined) return await inSession(server.sessions, around.session, around, sql, use)
  const connection = server.engine.connect(fixedSettings(around.queryId))
  try {
    const before = prelude(around, around.settings)
    if (before !== '') await connection.query(before, 'Null')
    return await use(connection)
  } finally {
    connection.close()
  }
}
