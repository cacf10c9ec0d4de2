import type { Connection, ResultChunk } from '../engine/engine.ts'

/** What the engine reports of a statement, 0 for what is absent. The rows it read from tables are not among it. */
export interface Summary {
  readonly resultRows?: number
  readonly resultBytes?: number
  readonly writtenRows?: number
  readonly writtenBytes?: number
  readonly elapsedMs: number
}

/** A statement's outcome: complete, or its beginning with the rest to come. */
export type Answer =
  | { readonly kind: 'whole'; readonly format: string; readonly bytes: Buffer; readonly summary: Summary }
  | {
      readonly kind: 'stream'
      readonly format: string
      readonly begun: readonly Buffer[]
      readonly rest: AsyncGenerator<ResultChunk, void, undefined>
    }

/** Bytes held back before an answer begins, so that most failures still get their status; also a server's default. */
const heldBytesMax = 1024 ** 2

/** Formats without head, foot or separators: the engine formats every block on its own, and these may simply follow. */
const cuttable = new Set([
  'JSONEachRow',
  'JSONLines',
  'NDJSON',
  'JSONStringsEachRow',
  'JSONCompactEachRow',
  'JSONCompactStringsEachRow',
  'TabSeparated',
  'TSV',
  'TabSeparatedRaw',
  'TSVRaw',
  'TSKV',
  'CSV',
  'LineAsString',
  'Native',
  'RowBinary',
  'Null',
])

/** Totals and extremes follow the rows; an array of rows has brackets. */
const uncuttable = /\btotals\b|\bextremes\b|array_of_rows/i

/** Whether the blocks of this result may be sent one by one. */
export function canStream(format: string, sql: string, settings: Readonly<Record<string, string>>): boolean {
  const isOn = ([name, value]: readonly [string, string]) => uncuttable.test(name) && value !== '0'
  return cuttable.has(format) && !uncuttable.test(sql) && !Object.entries(settings).some(isOn)
}

/** Answers with the whole result, held in memory. */
export async function answerWhole(connection: Connection, sql: string, format: string): Promise<Answer> {
  const { bytes, rows, elapsedMs } = await connection.query(sql, format)
  return { kind: 'whole', format, bytes, summary: { resultRows: rows, resultBytes: bytes.length, elapsedMs } }
}

/** Runs an INSERT that reads its rows from a query or a file. */
export async function answerInsert(connection: Connection, sql: string, format: string): Promise<Answer> {
  const { rows, bytes, elapsedMs } = await connection.insert(sql)
  const summary = { writtenRows: rows, writtenBytes: bytes, elapsedMs }
  return { kind: 'whole', format, bytes: Buffer.alloc(0), summary }
}

/** Answers a small result whole, and streams a larger one. The caller ends `rest` in every case. */
export async function answerStream(connection: Connection, sql: string, format: string): Promise<Answer> {
  const startedAt = performance.now()
  const rest = connection.stream(sql, format)
  const begun: Buffer[] = []
  let held = 0
  let rows = 0
  while (held < heldBytesMax) {
    const step = await rest.next()
    if (step.done) {
      const elapsedMs = performance.now() - startedAt
      const summary = { resultRows: rows, resultBytes: held, elapsedMs }
      return { kind: 'whole', format, bytes: Buffer.concat(begun), summary }
    }
    begun.push(step.value.bytes)
    held += step.value.bytes.length
    rows += step.value.rows
  }
  return { kind: 'stream', format, begun, rest }
}
