import { addAbortSignal, pipeline, type Readable, Transform } from 'node:stream'
import type { AnswerForm, StreamFormat } from '@weir/api/query/answer-form.ts'
import type { FilledSteps } from '@weir/api/query/fill.ts'
import type { RollupQuery } from '@weir/api/query/usage-query.ts'
import type { ClickHouseClient, ClickHouseSettings } from '@weir/clickhouse/connect.ts'
import { questionBounds, streamRowsMax, throwBound } from '@weir/clickhouse/question-bounds.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { type ColumnWriter, type RollupSource, rollupSql } from './rollup-sql.ts'

/** A stream may take so long altogether; who reads slower asks for less, or in pages. */
export const streamMsMax = 120_000

const boundsOf = (rowsMax: number, msMax: number): ClickHouseSettings => ({
  ...questionBounds(msMax),
  // Groups are complete before the first row is sent: too many of them are an error instead of a stream that breaks.
  max_rows_to_group_by: String(rowsMax),
  group_by_overflow_mode: 'throw',
  max_result_rows: String(rowsMax),
  result_overflow_mode: 'throw',
})

const settings: ClickHouseSettings = {
  // ClickHouse ends only queries that may write nothing when their client leaves.
  readonly: '2',
  cancel_http_readonly_queries_on_client_close: 1,
  output_format_csv_crlf_end_of_line: 1, // RFC 4180
  format_csv_null_representation: '',
  output_format_parquet_string_as_string: 1,
}

/** What a spreadsheet takes for a formula when a text begins so. */
const formulaStarts = String.raw`('=', '+', '-', '@', '\t', '\r', '\0')`
const guardFormula = (value: string) =>
  `if(substring(${value}, 1, 1) IN ${formulaStarts}, concat('''', ${value}), ${value})`

interface FormatSql {
  readonly name: string
  /** What a whole answer ends with. An exception in the middle of one ends with something else. */
  readonly end: string
  readonly head?: (columns: readonly string[]) => string
  readonly tail?: (rows: number) => string
}

const formats: Readonly<Record<StreamFormat, FormatSql>> = {
  // The header is written here, so that an engine which buffers formats with one can stream this, too.
  csv: { name: 'CSV', end: '\r\n', head: (columns) => `${columns.map((name) => `"${name}"`).join(',')}\r\n` },
  jsonl: { name: 'JSONEachRow', end: '}\n', tail: (rows) => `${JSON.stringify({ end: true, rows })}\n` },
  parquet: { name: 'Parquet', end: 'PAR1' },
}

/** How a stream is written. */
export interface StreamForm extends Omit<AnswerForm, 'limit'> {
  readonly format: StreamFormat
}

function writerOf({ format, isCsvExact }: StreamForm, by: readonly string[]): ColumnWriter {
  if (format === 'csv' && !isCsvExact) return (name, value) => (by.includes(name) ? guardFormula(value) : value)
  // Parquet has no integers of 128 bits.
  if (format === 'parquet')
    return (name, value) => (/^(?:previous_)?(?:cost|quantity)$/.test(name) ? `toDecimal128(${value}, 0)` : value)
  return (_, value) => value
}

/** What fails after its first rows has the exception behind them, in a frame of its own. Rows are not logged. */
const exceptionBytesMax = 4_096
const exceptionFrame = /\r\n__exception__\r\n\w+\r\n(Code: [^\r\n]{0,500})/
const endedInItsMiddle = (tail: string, cause?: Error) =>
  new Error(`ClickHouse ended an answer in its middle: ${exceptionFrame.exec(tail)?.[1] ?? 'it gave no reason'}`, {
    cause,
  })

/** Ends with an error what does not end as a whole answer does; adds what the format has before and behind the rows. */
function wholeAnswer({ end, head, tail }: FormatSql, columns: readonly string[]): Transform {
  const marker = '__exception__\r\n'
  let last: Buffer = Buffer.alloc(0)
  let rows = 0
  return new Transform({
    construct(done) {
      if (head !== undefined) this.push(head(columns))
      done()
    },
    transform(chunk: Buffer, _encoding, done) {
      if (tail !== undefined) for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) rows += 1
      last = Buffer.concat([last, chunk.subarray(-exceptionBytesMax)]).subarray(-exceptionBytesMax)
      done(null, chunk)
    },
    flush(done) {
      const text = last.toString('latin1')
      const isWhole = text === '' || (text.endsWith(end) && !text.endsWith(marker))
      if (!isWhole) return done(endedInItsMiddle(text))
      done(null, tail?.(rows))
    },
    destroy(error, done) {
      const isCut = (error as NodeJS.ErrnoException | null)?.code === 'ECONNRESET'
      done(isCut ? endedInItsMiddle(last.toString('latin1'), error ?? undefined) : error)
    },
  })
}

/** One question, as a stream. */
export interface StreamQuestion {
  readonly source: RollupSource
  readonly query: RollupQuery<string>
  readonly form: StreamForm
  readonly filled?: FilledSteps | undefined
}

/**
 * Opens the whole answer to a question as bytes, in one of ClickHouse's own formats. Resolves once ClickHouse has
 * begun to answer; rejects with its error before, and with a QuestionBoundMet for what asks too much. The stream ends
 * with an error wherever the answer is not whole: its reader must not take half of it for all. It reads no faster than
 * it is read; `signal` ends it, and its query.
 */
export async function openUsageStream(
  client: ClickHouseClient,
  reach: Reach,
  { source, query: question, form, filled }: StreamQuestion,
  signal: AbortSignal,
  { rowsMax = streamRowsMax, msMax = streamMsMax }: { readonly rowsMax?: number; readonly msMax?: number } = {},
): Promise<Readable> {
  const format = formats[form.format]
  const all = { rowsMax: rowsMax + 1, filled } // One more than the bound meets it.
  const { query, params, columns } = rollupSql(source, reach, question, all, writerOf(form, question.by))
  const answered = client.exec({
    query: `${query}\nFORMAT ${format.name}`,
    query_params: params,
    abort_signal: signal,
    clickhouse_settings: {
      ...boundsOf(rowsMax, msMax),
      ...settings,
      output_format_json_quote_64bit_integers: form.sumsAreText ? 1 : 0,
    },
  })
  const { stream } = await answered.catch(throwBound)
  const whole = wholeAnswer(format, columns)
  pipeline(stream, whole, () => undefined)
  return addAbortSignal(signal, whole)
}
