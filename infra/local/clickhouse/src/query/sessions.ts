import type { Connection } from '../engine/connection.ts'
import type { Engine } from '../engine/engine.ts'
import { notImplemented, serverException } from '../engine/exception.ts'
import { sqlName, sqlString } from '../sql/tokens.ts'

/** What a client asks of a session with `session_id`, `session_timeout` and `session_check`. */
export interface SessionRequest {
  readonly id: string
  readonly timeoutMs: number
  readonly mustExist: boolean
}

interface Session {
  readonly connection: Connection
  /** Parameters that earlier requests gave: the engine cannot forget them, so they are refused by name. */
  readonly paramNames: Set<string>
  busy: boolean
  expiry: NodeJS.Timeout | undefined
}

/** A session while one request has it. */
export interface LentSession {
  readonly connection: Connection
  readonly paramNames: Set<string>
  giveBack(): void
  /** For a session that could not be put back as it was. */
  end(): void
}

/** Each session keeps a connection open, a few hundred kB; a client has one or a few. */
const sessionsMax = 256

/** Named sessions: a connection that outlives its requests, with the effects of SET, USE and temporary tables. */
export class Sessions {
  readonly #engine: Engine
  readonly #sessions = new Map<string, Session>()

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /** Lends the session's connection to one request at a time, as ClickHouse does; `giveBack` starts its expiry. */
  take(request: SessionRequest): LentSession {
    const session = this.#sessions.get(request.id) ?? this.#create(request)
    if (session.busy) throw serverException(373, `Session ${request.id} is locked by a concurrent client`)
    session.busy = true
    clearTimeout(session.expiry)
    const giveBack = () => {
      session.busy = false
      session.expiry = setTimeout(() => this.#end(request.id, session), request.timeoutMs).unref()
    }
    return {
      connection: session.connection,
      paramNames: session.paramNames,
      giveBack,
      end: () => this.#end(request.id, session),
    }
  }

  #create(request: SessionRequest): Session {
    if (request.mustExist) throw serverException(372, `Session ${request.id} not found`)
    if (this.#sessions.size >= sessionsMax) {
      throw serverException(202, `Too many sessions. Maximum: ${sessionsMax}; they end after session_timeout`)
    }
    const session = {
      connection: this.#engine.connect(),
      paramNames: new Set<string>(),
      busy: false,
      expiry: undefined,
    }
    this.#sessions.set(request.id, session)
    return session
  }

  #end(id: string, session: Session): void {
    clearTimeout(session.expiry)
    this.#sessions.delete(id)
    session.connection.close()
  }

  /** Ends all of them. None may be lent. */
  close(): void {
    for (const [id, session] of this.#sessions) this.#end(id, session)
  }
}

/**
 * The statement that puts a session back as it was before a request's own settings and database: what comes with a
 * request holds for that request alone, also within a session.
 */
export async function readRestoration(
  connection: Connection,
  names: readonly string[],
  database: string | undefined,
): Promise<string> {
  if (names.includes('readonly')) throw notImplemented('readonly within a session')
  const statements: string[] = []
  if (database !== undefined) {
    const { bytes } = await connection.query('SELECT currentDatabase()', 'TabSeparatedRaw')
    statements.push(`USE ${sqlName(bytes.toString().replace(/\n$/, ''))}`)
  }
  if (names.length > 0) {
    const list = names.map(sqlString).join(', ')
    // The value as an expression that SET takes: DEFAULT, or the old value quoted.
    const value =
      "if(changed, concat('\\'', replaceAll(replaceAll(value, '\\\\', '\\\\\\\\'), '\\'', '\\\\\\''), '\\''), 'DEFAULT')"
    const sql = `SELECT arrayStringConcat(groupArray(concat(name, ' = ', ${value})), ', ') FROM system.settings WHERE name IN (${list})`
    const { bytes } = await connection.query(sql, 'TabSeparatedRaw')
    const changes = bytes.toString().replace(/\n$/, '')
    if (changes !== '') statements.push(`SET ${changes}`)
  }
  return statements.join('; ')
}
