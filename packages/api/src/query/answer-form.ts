/** How an answer can be written: `json` in pages, the others whole, as a stream. */
export const answerFormats = ['json', 'csv', 'jsonl', 'parquet'] as const
/** How an answer is written. */
export type AnswerFormat = (typeof answerFormats)[number]
/** A format that comes as a stream. */
export type StreamFormat = Exclude<AnswerFormat, 'json'>

/** The media type of each format that is streamed. */
export const streamTypes: Readonly<Record<StreamFormat, string>> = {
  csv: 'text/csv; charset=utf-8; header=present',
  jsonl: 'application/x-ndjson; charset=utf-8',
  parquet: 'application/vnd.apache.parquet',
}

/** How the rows of an answer are written. */
export interface AnswerForm {
  readonly format: AnswerFormat
  /** Whether sums are text, for readers whose numbers end at 2^53. */
  readonly sumsAreText: boolean
  /** Whether a text of CSV stands as it is, though a spreadsheet may take it for a formula. */
  readonly isCsvExact: boolean
  /** The rows of a page. */
  readonly limit: number
}

/** The parameters that say how an answer is written. */
export const formParameters = ['format', 'numbers', 'csv', 'limit', 'after'] as const

/** Reads how the answer is written, with what is wrong about that. */
export function readForm(params: Readonly<Record<string, string | undefined>>, problems: string[]): AnswerForm {
  const { numbers = 'json', csv = 'safe', limit = '1000' } = params
  const format = answerFormats.find((one) => one === (params.format ?? 'json')) ?? 'json'
  if (numbers === 'text' && (format === 'csv' || format === 'parquet')) {
    problems.push('numbers needs json or jsonl: other formats are always exact')
  }
  if (params.csv !== undefined && format !== 'csv') problems.push('csv needs format=csv')
  if (format !== 'json') {
    const ofPages = (['limit', 'after'] as const).filter((name) => params[name] !== undefined)
    for (const name of ofPages) problems.push(`${name} needs format=json: ${format} has no pages`)
  }
  return { format, sumsAreText: numbers === 'text', isCsvExact: csv === 'exact', limit: Number(limit) }
}

const acceptedTypes: Readonly<Record<string, AnswerFormat>> = {
  'application/json': 'json',
  'text/csv': 'csv',
  'application/jsonl': 'jsonl',
  'application/x-ndjson': 'jsonl',
  'application/vnd.apache.parquet': 'parquet',
}

/** Returns the format that a header `Accept` puts first. Undefined where it names none of them. */
export function acceptedFormat(accept: string): AnswerFormat | undefined {
  const named = accept.split(',').flatMap((part) => {
    const [type = '', ...more] = part.split(';').map((one) => one.trim().toLowerCase())
    const format = Object.hasOwn(acceptedTypes, type) ? acceptedTypes[type] : undefined
    const weight = Number(more.find((one) => one.startsWith('q='))?.slice(2) ?? 1)
    return format === undefined || !(weight > 0) ? [] : [{ format, weight }]
  })
  return named.toSorted((a, b) => b.weight - a.weight)[0]?.format
}
