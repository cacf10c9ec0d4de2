import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { notImplemented, serverException } from '../engine/exception.ts'
import type { Job, QueryServer } from '../query/query-server.ts'
import { type RequestOptions, readOptions } from '../query/request-options.ts'
import { refuseBeyondDatabase } from '../sql/beyond-database.ts'
import { readStatement } from '../sql/statement.ts'
import { sqlString } from '../sql/tokens.ts'
import { authenticate } from './access.ts'
import { type Body, engineDecoding, readBody, readHead } from './request-body.ts'
import { respond } from './respond.ts'

/** Bytes in which the statement is sought; an INSERT's data beyond them is never held in memory. */
const headBytes = 256 * 1024
/** The engine's own bound is max_query_size, 256 KiB unless a client raises it. */
const statementBytesMax = 16 * 1024 ** 2

/** What requests are answered with. */
export interface Handling {
  readonly server: QueryServer
  readonly password: string
  /** The address it listens on, which is a name that clients may call it by. */
  readonly host: string
}

/** Decompresses a body by a method that only the engine has; the result is held in memory. */
async function decodeByEngine({ server }: Handling, body: Body, method: string): Promise<Body> {
  async function* bytes() {
    yield body.head
    yield* body.rest
  }
  return await server.withFile(bytes(), async (file) => {
    using connection = server.engine.connect()
    await connection.query('CREATE TEMPORARY TABLE _body (body String)', 'Null')
    const source = `FROM INFILE ${sqlString(file)} COMPRESSION ${sqlString(method)} FORMAT RawBLOB`
    await connection.query(`INSERT INTO _body ${source}`, 'Null')
    const { bytes: head } = await connection.query('SELECT body FROM _body', 'RawBLOB')
    return { head, ended: true, rest: body.rest }
  })
}

async function openBody(handling: Handling, request: IncomingMessage): Promise<Body> {
  const body = { head: Buffer.alloc(0), ended: false, rest: readBody(request) }
  const method = engineDecoding(request)
  return method === undefined ? body : await decodeByEngine(handling, body, method)
}

type Work = Pick<Job, 'statement' | 'sql' | 'data'>

/** The statement is the URL's query, a line break, and the body; an INSERT's data may follow it there. */
async function readWork(options: RequestOptions, opened: Body): Promise<Work> {
  let body = await readHead(opened, headBytes)
  const inUrl = options.query === '' ? '' : `${Buffer.from(options.query).toString('latin1')}\n`
  let text = inUrl + body.head.toString('latin1')
  let statement = readStatement(text)
  if (!body.ended && statement.kind !== 'insertData') {
    body = await readHead(body, statementBytesMax)
    if (!body.ended)
      throw serverException(229, `A statement may have ${statementBytesMax} bytes, an INSERT's data apart`)
    text = inUrl + body.head.toString('latin1')
    statement = readStatement(text)
  }
  if (statement.kind === 'empty')
    throw serverException(62, 'Syntax error: failed at position 1 (end of query): Empty query')
  if (statement.kind !== 'insertData') return { statement, sql: text, data: [] }
  // Data that begins in the URL is followed by the body; with none there, the break between the two is not data.
  const { dataAt } = statement.data
  const head =
    dataAt >= inUrl.length ? body.head.subarray(dataAt - inUrl.length) : Buffer.from(text.slice(dataAt), 'latin1')
  async function* data() {
    yield head
    if (!body.ended) yield* body.rest
  }
  return { statement, sql: text.slice(0, dataAt), data: data() }
}

/** Answers one statement. Every failure before the answer begins is thrown as a ServerException. */
export async function handleQuery(
  handling: Handling,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const parameters = new URL(request.url ?? '/', 'http://localhost').searchParams
  // Known before anything can fail: the answer names the query also when it is an exception.
  const queryId = parameters.get('query_id') || randomUUID()
  response.setHeader('x-clickhouse-query-id', encodeURI(queryId))
  authenticate(parameters, request.headers, handling.password)
  if (request.headers['content-type']?.startsWith('multipart/form-data')) throw notImplemented('a multipart form')
  const options = readOptions(parameters, request.headers)
  const work = await readWork(options, await openBody(handling, request))
  refuseBeyondDatabase(work.sql, options.settings)
  const { kind } = work.statement
  if (request.method === 'GET' && kind !== 'select' && kind !== 'read') {
    throw serverException(
      164,
      'Cannot execute query in readonly mode. For queries over HTTP, method GET implies readonly. You should use method POST for modifying queries',
    )
  }
  const { facts } = handling.server.engine
  await handling.server.run({ ...work, queryId, options, signal }, (answer) =>
    respond(response, answer, { headers: request.headers, compressed: options.compressed, facts }),
  )
}
