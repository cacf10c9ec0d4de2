import type { Connection } from '../engine/connection.ts'
import type { Engine } from '../engine/engine.ts'
import { ServerException, serverException, toServerException } from '../engine/exception.ts'
import { type InsertData, readingFromFile } from '../sql/insert-data.ts'
import { killingByClientQueryId, withClientQueryIds } from '../sql/query-ids.ts'
import type { Statement } from '../sql/statement.ts'
import { type Answer, answerInsert, answerStream, answerWhole, canStream } from './answer.ts'
import { cancelQuery } from './cancel.ts'
import { Sessions } from './sessions.ts'
import { Slots } from './slots.ts'
import type { Spool } from './spool.ts'
import { type Surroundings, withConnection } from './with-connection.ts'

/** Concurrent statements. Each holds a thread of Node's pool while it runs; the engine itself uses all processors. */
const runningMax = 16
/** Threads in Node's pool: the running statements, cancelling them, files and compression. */
export const poolThreads = 32
/** A few hundred waiting requests are a burst; more are a client in a loop. */
const waitingMax = 512

/**
 * Sends what must be sent while the statement runs, and returns what completes the answer. The completion comes when
 * everything is given back: a client that has its answer may use its session and its query id again at once.
 */
export type Respond = (answer: Answer) => Promise<Complete>
export type Complete = () => Promise<void>

/** One statement to run. Its text is latin1, a character per byte. */
export interface Job {
  readonly statement: Exclude<Statement, { kind: 'empty' }>
  readonly sql: string
  /** The rows behind an INSERT. */
  readonly data: Iterable<Buffer> | AsyncIterable<Buffer>
  readonly around: Surroundings
  readonly defaultFormat: string
  readonly whole: boolean
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal
}

/** What runs around a statement in its connection: for most, nothing. */
const alone: { readonly before: readonly string[]; readonly after: readonly string[] } = { before: [], after: [] }

const toUtf8 = (latin1: string): string => Buffer.from(latin1, 'latin1').toString('utf8')
const toLatin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

/** Runs statements on the engine: at most so many at once, each on a connection of its own, cancellable by its id. */
export class QueryServer {
  readonly engine: Engine
  readonly sessions: Sessions
  readonly #spool: Spool
  readonly #slots = new Slots({ runningMax, waitingMax })
  readonly #running = new Set<string>()
  readonly #cancelling = new Set<Promise<void>>()

  constructor(engine: Engine, spool: Spool) {
    this.engine = engine
    this.sessions = new Sessions(engine)
    this.#spool = spool
  }

  /** Resolves when the statement has ended, its connection or session is free, and the answer may be completed. */
  async run(job: Job, respond: Respond): Promise<void> {
    const { queryId } = job.around
    if (this.#running.has(queryId)) {
      throw serverException(216, `Query with id = ${queryId} is already running`)
    }
    this.#running.add(queryId)
    let complete: Complete
    try {
      const { statement } = job
      if (statement.kind === 'insertData') complete = await this.#insertData(job, statement.data, respond)
      else complete = await this.#inSlot(job, toUtf8(job.sql), respond)
    } finally {
      this.#running.delete(queryId)
    }
    await complete()
  }

  /** The upload goes to its file first, so that a slow client holds no slot. */
  async #insertData(job: Job, data: InsertData, respond: Respond): Promise<Complete> {
    return await this.#spool.withFile(job.data, async (file) => {
      try {
        const { before, sql, after } = readingFromFile(job.sql, data, toLatin1(file))
        const around = { before: before.map(toUtf8), after: after.map(toUtf8) }
        return await this.#inSlot(job, toUtf8(sql), respond, around)
      } catch (error) {
        const { clickhouseCode, message } = toServerException(error)
        // The client knows of no file.
        throw new ServerException(clickhouseCode, message.replaceAll(`: (in file/uri ${file})`, ''))
      }
    })
  }

  async #inSlot(job: Job, sql: string, respond: Respond, { before, after } = alone): Promise<Complete> {
    // Killing must work exactly when every slot is taken.
    const leave = job.statement.kind === 'kill' ? () => {} : await this.#slots.take(job.signal)
    let ended = false
    const cancel = () => this.#cancel(job.around.queryId, () => ended)
    // What writes goes on to its end, as on a server: the client cannot know any more how far it came.
    const cancellable = job.statement.kind === 'select' || job.statement.kind === 'read'
    try {
      return await withConnection(this, job.around, sql, async (connection) => {
        job.signal.throwIfAborted()
        if (cancellable) job.signal.addEventListener('abort', cancel, { once: true })
        try {
          for (const one of before) await connection.query(one, 'Null')
          const answer = await this.#answer(connection, job, sql)
          try {
            return await respond(answer)
          } finally {
            if (answer.kind === 'stream') await answer.rest.return()
          }
        } finally {
          for (const one of after) await connection.query(one, 'Null')
        }
      })
    } finally {
      ended = true
      job.signal.removeEventListener('abort', cancel)
      leave()
    }
  }

  #answer(connection: Connection, job: Job, sql: string): Promise<Answer> {
    const { statement, around, defaultFormat } = job
    if (statement.kind === 'insertData') return answerInsert(connection, sql, defaultFormat)
    const format = statement.format ?? defaultFormat
    if (statement.kind === 'insertSelect') return answerInsert(connection, sql, format)
    if (statement.kind === 'kill') return answerWhole(connection, killingByClientQueryId(sql), format)
    if (statement.kind !== 'select') return answerWhole(connection, sql, format)
    const rewritten = withClientQueryIds(sql)
    if (job.whole || !canStream(format, sql, around.settings)) return answerWhole(connection, rewritten, format)
    return answerStream(connection, rewritten, format)
  }

  #cancel(queryId: string, ended: () => boolean): void {
    const cancelling = cancelQuery(this.engine, queryId, ended)
      .catch(() => {}) // The query then runs to its end.
      .finally(() => this.#cancelling.delete(cancelling))
    this.#cancelling.add(cancelling)
  }

  /** Stops what runs. Resolves when no connection is in use any more, or when the attempts are used up. */
  async stopRunning(): Promise<void> {
    for (const queryId of this.#running) this.#cancel(queryId, () => !this.#running.has(queryId))
    await Promise.all(this.#cancelling)
  }

  get runningCount(): number {
    return this.#running.size
  }
}
