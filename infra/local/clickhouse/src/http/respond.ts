import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliCompress, createDeflate, createGzip, createZstdCompress } from 'node:zlib'
import type { ResultChunk, ServerFacts } from '../engine/engine.ts'
import { type ServerException, statusOf, toServerException } from '../engine/exception.ts'
import type { Answer, Summary } from '../query/answer.ts'
import type { Complete } from '../query/query-server.ts'

/** Best first. LZ4 would be ClickHouse's choice; Node has none. */
const encoders = {
  zstd: createZstdCompress,
  gzip: createGzip,
  deflate: createDeflate,
  br: createBrotliCompress,
} as const

function pickEncoding(headers: IncomingHttpHeaders): keyof typeof encoders | undefined {
  const accepted = [headers['accept-encoding'] ?? ''].flat().join(',')
  const names = new Set(accepted.split(',').map((part) => part.split(';')[0]?.trim()))
  for (const name of ['zstd', 'gzip', 'deflate', 'br'] as const) if (names.has(name)) return name
  return undefined
}

const count = (value = 0): string => String(Math.round(value))

function summaryHeader(summary: Summary): string {
  return JSON.stringify({
    read_rows: '0',
    read_bytes: '0',
    written_rows: count(summary.writtenRows),
    written_bytes: count(summary.writtenBytes),
    total_rows_to_read: '0',
    result_rows: count(summary.resultRows),
    result_bytes: count(summary.resultBytes),
    elapsed_ns: count(summary.elapsedMs * 1e6),
  })
}

/** The text of an exception with the version behind it, as servers end it. */
const exceptionText = (error: ServerException, facts: ServerFacts): string =>
  `${error.message} (version ${facts.version} (official build))\n`

/** Answers with an exception. */
export function respondException(response: ServerResponse, error: ServerException, facts: ServerFacts): void {
  const body = Buffer.from(exceptionText(error, facts))
  response.writeHead(statusOf(error.clickhouseCode), {
    'content-type': 'text/plain; charset=UTF-8',
    'content-length': body.length,
    'x-clickhouse-exception-code': error.clickhouseCode,
  })
  response.end(body)
}

/** How servers since 25.11 report a failure in the middle of a result: framed by a tag that the headers announced. */
function exceptionBlock(error: ServerException, facts: ServerFacts, tag: string): Buffer {
  const text = exceptionText(error, facts)
  const marker = '__exception__'
  return Buffer.from(`\r\n${marker}\r\n${tag}\r\n${text}${Buffer.byteLength(text)} ${tag}\r\n${marker}\r\n`)
}

const json = ['JSON', 'JSONStrings', 'JSONCompact', 'JSONCompactStrings', 'JSONColumns', 'JSONColumnsWithMetadata']
const binary = /^(Native|RowBinary|Parquet|Arrow|ORC|Avro|MsgPack|Protobuf|CapnProto|BSON|RawBLOB|Npy|MySQLWire)/

/** The media type that ClickHouse gives a format. */
export function contentType(format: string): string {
  if (json.includes(format)) return 'application/json; charset=UTF-8'
  if (format === 'NDJSON' || format.startsWith('JSON')) return 'application/x-ndjson; charset=UTF-8'
  if (/^(TSV|TabSeparated)/.test(format)) return 'text/tab-separated-values; charset=UTF-8'
  if (format.startsWith('CSVWithNames')) return 'text/csv; charset=UTF-8; header=present'
  if (format.startsWith('CSV')) return 'text/csv; charset=UTF-8; header=absent'
  if (format === 'XML') return 'application/xml; charset=UTF-8'
  return binary.test(format) ? 'application/octet-stream' : 'text/plain; charset=UTF-8'
}

/** Sends an answer, compressed where the client asked for it and can read it. Returns what completes it. */
export async function respond(
  response: ServerResponse,
  answer: Answer,
  how: { readonly headers: IncomingHttpHeaders; readonly compressed: boolean; readonly facts: ServerFacts },
): Promise<Complete> {
  response.setHeader('x-clickhouse-format', answer.format)
  response.setHeader('content-type', contentType(answer.format))
  const encoding = how.compressed ? pickEncoding(how.headers) : undefined
  if (encoding !== undefined) response.setHeader('content-encoding', encoding)
  const encoder = encoding === undefined ? [] : [encoders[encoding]()]
  if (answer.kind === 'whole') {
    response.setHeader('x-clickhouse-summary', summaryHeader(answer.summary))
    if (encoding === undefined) response.setHeader('content-length', answer.bytes.length)
    return () => pipeline([Readable.from([answer.bytes], { objectMode: false }), ...encoder, response])
  }
  const tag = randomBytes(8).toString('hex')
  response.setHeader('x-clickhouse-exception-tag', tag)
  let failed = false
  async function* body(begun: readonly Buffer[], rest: AsyncIterable<ResultChunk>) {
    try {
      yield* begun
      for await (const { bytes } of rest) yield bytes
    } catch (error) {
      failed = true
      yield exceptionBlock(toServerException(error), how.facts, tag)
    }
  }
  const source = Readable.from(body(answer.begun, answer.rest), { objectMode: false })
  await pipeline([source, ...encoder, response], { end: false })
  return async () => {
    // Without the last chunk a client that does not know the tag still sees that something is missing.
    if (failed) response.socket?.end()
    else response.end()
  }
}
