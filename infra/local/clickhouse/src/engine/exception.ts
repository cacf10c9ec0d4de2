/** An exception as a ClickHouse server words it. Every failure reaches the client as one of these. */
export class ServerException extends Error {
  readonly clickhouseCode: number

  constructor(clickhouseCode: number, message: string) {
    super(message)
    this.name = 'ServerException'
    this.clickhouseCode = clickhouseCode
  }
}

/** The codes that this server raises on its own; the engine raises all others. */
const namesByCode = {
  36: 'BAD_ARGUMENTS',
  48: 'NOT_IMPLEMENTED',
  62: 'SYNTAX_ERROR',
  164: 'READONLY',
  202: 'TOO_MANY_SIMULTANEOUS_QUERIES',
  216: 'QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING',
  229: 'QUERY_IS_TOO_LARGE',
  236: 'ABORTED',
  241: 'MEMORY_LIMIT_EXCEEDED',
  271: 'CANNOT_DECOMPRESS',
  358: 'INTO_OUTFILE_NOT_ALLOWED',
  394: 'QUERY_WAS_CANCELLED',
  396: 'TOO_MANY_ROWS_OR_BYTES',
  456: 'UNKNOWN_QUERY_PARAMETER',
  512: 'SET_NON_GRANTED_ROLE',
  516: 'AUTHENTICATION_FAILED',
  1002: 'UNKNOWN_EXCEPTION',
} as const

/** An exception of this server's own, worded like the engine's. */
export const serverException = (code: keyof typeof namesByCode, text: string): ServerException =>
  new ServerException(code, `Code: ${code}. DB::Exception: ${text}. (${namesByCode[code]})`)

/** What ClickHouse can do and this server cannot, refused by its name. */
export const notImplemented = (what: string): ServerException =>
  serverException(48, `${what} is not implemented by Weir's local ClickHouse; use a ClickHouse server for it`)

const wrapped = /^Code: (\d+)\. DB::Exception: (Code: \1\. DB::Exception: .*) \(version [^()]*\)\. \(\w+\)$/s

/** The engine nests some exceptions in themselves, once per layer; one layer says it all. */
function unwrap(message: string): string {
  const inner = wrapped.exec(message)?.[2]
  return inner === undefined ? message : unwrap(inner)
}

/** Returns anything thrown as the exception that a server would report. */
export function toServerException(error: unknown): ServerException {
  if (error instanceof ServerException) return error
  const message = error instanceof Error ? error.message : String(error)
  const code = /^Code: (\d+)\. /.exec(message)?.[1]
  if (code === undefined) return serverException(1002, message)
  return new ServerException(Number(code), unwrap(message.trimEnd()))
}

const badRequest = [
  6, 8, 15, 25, 26, 27, 36, 37, 38, 41, 44, 53, 62, 72, 117, 123, 167, 168, 223, 321, 376, 427, 441, 675, 676,
]
const statuses = new Map<number, readonly number[]>([
  [400, badRequest],
  [401, [194]],
  [403, [192, 193, 497, 512, 516]],
  [404, [46, 47, 50, 56, 60, 63, 73, 78, 81, 115, 152, 336, 511]],
  [408, [159]],
  [411, [381]],
  [413, [229]],
  [415, [779]],
  [501, [48]],
  [503, [76, 209, 439]],
])

/** The HTTP status that ClickHouse gives an exception of this code. */
export const statusOf = (code: number): number =>
  statuses.entries().find(([, codes]) => codes.includes(code))?.[0] ?? 500
