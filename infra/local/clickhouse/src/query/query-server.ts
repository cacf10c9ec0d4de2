import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { Connection, Engine } from '../engine/engine.ts'
import { ServerException, serverException, toServerException } from '../engine/exception.ts'
import { killingByClientQueryId, queryIdMark, withClientQueryIds } from '../sql/query-ids.ts'
import { type InsertData, readingFromFile, type Statement } from '../sql/statement.ts'
import { sqlName, sqlString } from '../sql/tokens.ts'
import { type Answer, answerInsert, answerStream, answerWhole, canStream } from './answer.ts'
import type { RequestOptions } from './request-options.ts'
import { Slots } from './slots.ts'

/** Concurrent statements. Each holds a thread of Node's pool while it runs; the engine itself uses all processors. */
const runningMax = 16
/** Threads in Node's pool: the running statements, cancelling them, files and compression. */
export const poolThreads = 32
/** A few hundred waiting requests are a burst; more are a client in a loop. */
const waitingMax = 512
/** A result that must be held in memory ends here, by the engine's count of bytes; one that is streamed has no end. */
const wholeResultBytesMax = 512 * 1024 ** 2
/** A query that is just starting is not in the list yet, and one in a long computation looks up seldom: ask again. */
const cancelAttemptsMax = 60
const cancelEveryMs = 50

/**
 * Sends what must be sent while the statement runs, and returns what completes the answer. The completion comes when
 * everything is released: a client that has its answer may use its query id again immediately.
 */
export type Respond = (answer: Answer) => Promise<Complete>
/** Completes an answer. */
export type Complete = () => Promise<void>

/** One statement to run. Its text is latin1, a character per byte. */
export interface Job {
  readonly statement: Exclude<Statement, { kind: 'empty' }>
  readonly sql: string
  /** The rows behind an INSERT. */
  readonly data: Iterable<Buffer> | AsyncIterable<Buffer>
  readonly queryId: string
  readonly options: RequestOptions
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
}

const toUtf8 = (latin1: string): string => Buffer.from(latin1, 'latin1').toString('utf8')
const toLatin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

/** What a connection runs before the request's statement; empty for nothing. */
function prelude({ database, settings, params }: RequestOptions): string {
  const values = [
    ...Object.entries(settings).map(([name, value]) => `${name} = ${sqlString(value)}`),
    ...Object.entries(params).map(([name, value]) => `param_${name} = ${sqlString(value)}`),
  ]
  const use = database === undefined ? [] : [`USE ${sqlName(database)}`]
  return [...use, ...(values.length === 0 ? [] : [`SET ${values.join(', ')}`])].join('; ')
}

/** Whether the rows go out as the engine makes them. */
const isStreamed = ({ statement, options: { whole, defaultFormat, settings } }: Job, sql: string): boolean =>
  statement.kind === 'select' && !whole && canStream(statement.format ?? defaultFormat, sql, settings)

/** Runs statements on the engine: a bounded number at a time, each on its own connection, cancellable by its id. */
export class QueryServer {
  readonly engine: Engine
  readonly #incoming: string
  readonly #slots = new Slots({ runningMax, waitingMax })
  readonly #running = new Set<string>()
  readonly #cancelling = new Set<Promise<void>>()

  private constructor(engine: Engine, incoming: string) {
    this.engine = engine
    this.#incoming = incoming
  }

  /**
   * `path`: the data directory, where the folder `incoming` has the data of INSERTs. It is emptied: what is in it
   * belongs to requests of a process that was killed.
   */
  static async open(engine: Engine, path: string): Promise<QueryServer> {
    const incoming = resolve(join(path, 'incoming'))
    if (/[*?{}]/.test(incoming)) {
      throw new Error(
        `the data directory ${path} may not have any of * ? { } in its name: the engine takes it for a pattern`,
      )
    }
    await rm(incoming, { recursive: true, force: true })
    await mkdir(incoming, { recursive: true })
    return new QueryServer(engine, incoming)
  }

  /**
   * Runs `use` with a file that holds these bytes, and is deleted afterwards. It costs no memory, takes any format and
   * any size, and is no slower than handing the bytes over in memory.
   */
  async withFile<T>(bytes: Iterable<Buffer> | AsyncIterable<Buffer>, use: (file: string) => Promise<T>): Promise<T> {
    const file = join(this.#incoming, randomUUID())
    try {
      await pipeline(Readable.from(bytes, { objectMode: false }), createWriteStream(file))
      return await use(file)
    } finally {
      await rm(file, { force: true })
    }
  }

  /** Resolves when the statement has ended, its connection is closed, and the answer may be completed. */
  async run(job: Job, respond: Respond): Promise<void> {
    const { queryId, statement } = job
    if (this.#running.has(queryId)) {
      throw serverException(216, `Query with id = ${queryId} is already running`)
    }
    this.#running.add(queryId)
    let complete: Complete
    try {
      if (statement.kind === 'insertData') complete = await this.#insertData(job, statement.data, respond)
      else complete = await this.#inSlot(job, toUtf8(job.sql), respond)
    } finally {
      this.#running.delete(queryId)
    }
    await complete()
  }

  /** The upload goes to its file first, so that a slow client holds no slot. */
  #insertData(job: Job, data: InsertData, respond: Respond): Promise<Complete> {
    return this.withFile(job.data, async (file) => {
      try {
        return await this.#inSlot(job, toUtf8(readingFromFile(job.sql, data, toLatin1(file))), respond)
      } catch (error) {
        const { clickhouseCode, message } = toServerException(error)
        // The client knows of no file.
        throw new ServerException(clickhouseCode, message.replaceAll(`: (in file/uri ${file})`, ''))
      }
    })
  }

  /**
   * The connection is new and closed afterwards, so that no setting, parameter, database or temporary table of one
   * request can reach another. It costs half a millisecond.
   */
  async #inSlot(job: Job, sql: string, respond: Respond): Promise<Complete> {
    const { statement, queryId, options, signal } = job
    // Killing must work exactly when every slot is taken.
    const leave = statement.kind === 'kill' ? () => {} : await this.#slots.take(signal)
    let ended = false
    const cancel = () => this.#cancel(queryId, () => ended)
    try {
      using connection = this.engine.connect({
        log_comment: `${queryIdMark}${queryId}`,
        ...(isStreamed(job, sql) ? {} : { max_result_bytes: String(wholeResultBytesMax) }),
      })
      const before = prelude(options)
      if (before !== '') await connection.query(before, 'Null')
      signal.throwIfAborted()
      // What writes goes on to its end, as on a server: the client cannot know any more how far it came.
      if (statement.kind === 'select' || statement.kind === 'read') {
        signal.addEventListener('abort', cancel, { once: true })
      }
      const answer = await this.#answer(connection, job, sql)
      try {
        return await respond(answer)
      } finally {
        if (answer.kind === 'stream') await answer.rest.return()
      }
    } finally {
      ended = true
      signal.removeEventListener('abort', cancel)
      leave()
    }
  }

  #answer(connection: Connection, job: Job, sql: string): Promise<Answer> {
    const { statement } = job
    const { defaultFormat } = job.options
    if (statement.kind === 'insertData') return answerInsert(connection, sql, defaultFormat)
    const format = statement.format ?? defaultFormat
    if (statement.kind === 'insertSelect') return answerInsert(connection, sql, format)
    if (statement.kind === 'kill') return answerWhole(connection, killingByClientQueryId(sql), format)
    if (statement.kind !== 'select') return answerWhole(connection, sql, format)
    const rewritten = withClientQueryIds(sql)
    return isStreamed(job, sql)
      ? answerStream(connection, rewritten, format)
      : answerWhole(connection, rewritten, format)
  }

  /** Asks the engine to stop a query until it has ended. Never waits inside it: `KILL … SYNC` can hang for minutes. */
  #cancel(queryId: string, ended: () => boolean): void {
    const kill = `KILL QUERY WHERE Settings['log_comment'] = ${sqlString(queryIdMark + queryId)} ASYNC`
    const attempt = async () => {
      using connection = this.engine.connect()
      for (let attempts = 0; attempts < cancelAttemptsMax && !ended(); attempts++) {
        await connection.query(kill, 'Null')
        await delay(cancelEveryMs)
      }
    }
    const cancelling = attempt()
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
