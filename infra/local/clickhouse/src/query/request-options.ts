import type { IncomingHttpHeaders } from 'node:http'
import { notImplemented, serverException } from '../engine/exception.ts'

/** What a request asks for, by its URL and its headers. */
export interface RequestOptions {
  /** The statement in the URL; the body follows it. */
  readonly query: string
  readonly database: string | undefined
  readonly defaultFormat: string
  /** The engine's settings, for this request alone. */
  readonly settings: Readonly<Record<string, string>>
  /** Values of `{name:Type}` placeholders. */
  readonly params: Readonly<Record<string, string>>
  readonly compressed: boolean
  /** The answer may begin only when the result is complete. */
  readonly whole: boolean
}

/** Read here or by the authentication, or of no effect on a server without sessions, progress headers and query log. */
const ownParameters = new Set([
  'query',
  'query_id',
  'database',
  'default_format',
  'user',
  'password',
  'quota_key',
  'buffer_size',
  'session_id',
  'session_timeout',
  'session_check',
  'wait_end_of_query',
  'stacktrace',
  'role',
  'client_protocol_version',
  'log_comment',
  'compress',
  'decompress',
])

const isSet = (value: string | null | undefined): boolean =>
  value != null && value !== '' && value !== '0' && value !== 'false'

function refuseUnsupported(parameters: URLSearchParams): void {
  if (isSet(parameters.get('compress'))) throw notImplemented("compress=1 (ClickHouse's native compression)")
  if (isSet(parameters.get('decompress'))) throw notImplemented("decompress=1 (ClickHouse's native compression)")
  const role = parameters.getAll('role').find((name) => name !== '')
  if (role !== undefined) throw serverException(512, `Role ${role} should be granted to set as a current`)
}

/** Reads a request's parameters; one without a meaning of its own is a setting, which the engine accepts or refuses. */
export function readOptions(parameters: URLSearchParams, headers: IncomingHttpHeaders): RequestOptions {
  refuseUnsupported(parameters)
  const header = (name: string) => [headers[name]].flat()[0] || undefined
  const settings: Record<string, string> = {}
  const params: Record<string, string> = {}
  for (const [name, value] of parameters) {
    if (name.startsWith('param_')) params[name.slice('param_'.length)] = value
    else if (!ownParameters.has(name)) settings[name] = value
  }
  for (const name of [...Object.keys(settings), ...Object.keys(params)]) {
    if (!/^\w+$/.test(name)) throw serverException(36, `Invalid name of a setting or parameter: '${name}'`)
  }
  return {
    query: parameters.get('query') ?? '',
    database: parameters.get('database') || header('x-clickhouse-database'),
    defaultFormat: parameters.get('default_format') || header('x-clickhouse-format') || 'TabSeparated',
    settings,
    params,
    compressed: isSet(settings.enable_http_compression),
    whole: isSet(parameters.get('wait_end_of_query')) || isSet(settings.http_wait_end_of_query),
  }
}
