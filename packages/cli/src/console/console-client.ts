import { Readable } from 'node:stream'
import { ReadableStream } from 'node:stream/web'
import { setTimeout as delay } from 'node:timers/promises'
import { WeirError } from '@weir/core/errors.ts'
import { readConfig, secret, text } from '@weir/runtime/read-config.ts'
import type { CommandContext } from '../command-context.ts'
import { isGiven } from '../find-servers.ts'
import { nothingToAsk, readStateFile } from '../read-state-file.ts'
import { readEvents, type StreamEvent } from './event-stream.ts'

/** A change waits at most ten seconds for Kafka; a person, no longer than this for all of it. */
const deadlineMs = 30_000

/** The console's URL and the token for it. */
export interface ConsoleAddress {
  readonly url: string
  readonly token: string
}

/** An answer of the console that is no error. */
export interface ConsoleAnswer<T> {
  /** As docs/admin-api.md says; null where the answer is not JSON. */
  readonly body: T
  /** As it came. */
  readonly text: string
  /** Id of the change in the audit; undefined where nothing was changed. */
  readonly change: string | undefined
}

const tokenVariables = {
  token: secret(text({ name: 'WEIR_ADMIN_TOKEN', about: 'token for calls to the console', fallback: '' })),
}

/** The token that the environment names; empty for none. */
export const adminTokenOf = (environment: CommandContext['environment']): string =>
  readConfig(tokenVariables, environment).token.text

/** Finds the console that the environment names, else that of the `weir up` on the data directory. */
export function findConsole(environment: CommandContext['environment'], dataDir: string): ConsoleAddress | undefined {
  const url = environment.WEIR_CONSOLE_URL || readStateFile(dataDir, 'console')
  const token = adminTokenOf(environment) || readStateFile(dataDir, 'adminToken')
  return url === undefined || token === undefined ? undefined : { url, token }
}

/** Finds the console as `findConsole` does. Throws CONFIG_INVALID where there is none. */
export function requireConsole(environment: CommandContext['environment'], dataDir: string): ConsoleAddress {
  const found = findConsole(environment, dataDir)
  if (found === undefined) {
    const missing = ['WEIR_CONSOLE_URL', 'WEIR_ADMIN_TOKEN'].filter((name) => !isGiven(environment, name)).join(' and ')
    throw nothingToAsk('console', missing, dataDir)
  }
  if (/^https?:\/\//.test(found.url) && URL.canParse(found.url)) return found
  throw new WeirError(
    'CONFIG_INVALID',
    `WEIR_CONSOLE_URL must be a URL that begins with http:// or https://, but is ${JSON.stringify(found.url)}`,
  )
}

/** A request to the console. */
export interface ConsoleRequest {
  readonly method?: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly path: string
  /** Values that are undefined are left out; of a list each is a parameter. */
  readonly query?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>
  /** A text is a policy file, anything else is sent as JSON. */
  readonly body?: unknown
  readonly accept?: string
  /** The entity that is put belongs to the file applied last, not to the caller. */
  readonly origin?: 'file'
  /** A status of a refusal that is an answer to this caller. */
  readonly alsoAnswer?: number
  /** Of a command that ends by itself: gives the request up. */
  readonly signal?: AbortSignal
  /** Instead of the half minute that a person waits for a change. */
  readonly deadlineMs?: number
  /** How long to ask again what the console does not know yet: it answers 404 with Retry-After. */
  readonly comesWithinMs?: number
}

/** Names the reason in the words of the operating system (`ECONNREFUSED`). */
function whyUnreachable(error: unknown, waitedMs: number): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  if (cause instanceof Error) return 'code' in cause ? String(cause.code) : cause.message
  return error.name === 'TimeoutError' ? `no response within ${waitedMs / 1_000} s` : error.message
}

/** The error of a console that does not answer, or not to the end. */
export const unreachable = (url: string, error: unknown, waitedMs = deadlineMs): WeirError =>
  new WeirError(
    'CONSOLE_UNAVAILABLE',
    `The console at ${url} cannot be reached: ${whyUnreachable(error, waitedMs)}. Start it with ./weir up, or name it with WEIR_CONSOLE_URL or --data.`,
    error,
  )

function addressOf(url: string, { path, query = {} }: ConsoleRequest): URL {
  const address = new URL(path, url)
  for (const [name, value] of Object.entries(query)) {
    for (const one of value === undefined ? [] : [value].flat()) address.searchParams.append(name, String(one))
  }
  return address
}

/** An answer, also one that refuses. */
interface Answered<T> extends ConsoleAnswer<T> {
  readonly status: number
  /** What the header Retry-After says; 0 without one. */
  readonly retryAfterMs: number
}

/** Asks the console. Throws CONSOLE_UNAVAILABLE when it does not answer, and the error that a refusal stands for. */
export async function askConsole<T>(address: ConsoleAddress, request: ConsoleRequest): Promise<ConsoleAnswer<T>> {
  const endsAt = performance.now() + (request.comesWithinMs ?? 0)
  for (;;) {
    const answer = await sendRequest<T>(address, request)
    const { status, retryAfterMs } = answer
    if (status < 400 || status === request.alsoAnswer) return answer
    const comes = status === 404 && retryAfterMs > 0
    if (!comes || performance.now() + retryAfterMs > endsAt) throw refusal(address.url, answer)
    await delay(retryAfterMs, undefined, request.signal && { signal: request.signal })
  }
}

async function sendRequest<T>(address: ConsoleAddress, request: ConsoleRequest): Promise<Answered<T>> {
  const { method = 'GET', body, accept = 'application/json', origin, signal } = request
  const isFile = typeof body === 'string'
  const headers: Record<string, string> = { accept }
  if (body !== undefined) headers['content-type'] = isFile ? 'application/yaml' : 'application/json'
  if (origin !== undefined) headers['weir-origin'] = origin
  const sent = body === undefined ? null : isFile ? body : JSON.stringify(body)
  const signals = [AbortSignal.timeout(request.deadlineMs ?? deadlineMs), signal ?? []].flat()
  try {
    const init = { method, headers, body: sent, signal: AbortSignal.any(signals) }
    return await readAnswer<T>(await fetchFrom(address, request, init))
  } catch (error) {
    throw unreachable(address.url, error, request.deadlineMs)
  }
}

const fetchFrom = ({ url, token }: ConsoleAddress, request: ConsoleRequest, init: RequestInit): Promise<Response> =>
  fetch(addressOf(url, request), {
    ...init,
    headers: { authorization: `Bearer ${token}`, ...init.headers },
    redirect: 'error', // the token is for this address alone
  })

async function readAnswer<T>(response: Response): Promise<Answered<T>> {
  const { status, headers } = response
  const text = await response.text()
  const isJson = /json/.test(headers.get('content-type') ?? '')
  const change = headers.get('weir-change') ?? undefined
  const retryAfterMs = Number(headers.get('retry-after') ?? 0) * 1_000
  return { status, text, change, body: JSON.parse(isJson ? text : 'null'), retryAfterMs }
}

/** Asks the console that the environment or the data directory names. Throws CONFIG_INVALID where neither does. */
export const consoleAnswer = async <T>(
  { environment }: CommandContext,
  { data }: { readonly data: string },
  request: ConsoleRequest,
): Promise<T> => (await askConsole<T>(requireConsole(environment, data), request)).body

/** Opens an answer of the console that is read as it comes. Throws as `askConsole` does. */
export async function openConsoleAnswer(
  address: ConsoleAddress,
  request: Pick<ConsoleRequest, 'path' | 'query'>,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Response> {
  try {
    const response = await fetchFrom(address, request, { headers, signal })
    if (response.status < 400) return response
    throw refusal(address.url, await readAnswer(response))
  } catch (error) {
    throw error instanceof WeirError ? error : unreachable(address.url, error)
  }
}

/**
 * Listens to a stream of the console until that ends, on from the event of `lastId`. Throws as `askConsole` does, and
 * CONSOLE_UNAVAILABLE when the stream breaks.
 */
export async function* openConsoleStream(
  address: ConsoleAddress,
  request: Pick<ConsoleRequest, 'path' | 'query'>,
  { lastId, signal }: { readonly lastId: string | undefined; readonly signal: AbortSignal },
): AsyncGenerator<StreamEvent> {
  const goOn = lastId === undefined ? {} : { 'last-event-id': lastId }
  const { body } = await openConsoleAnswer(address, request, { accept: 'text/event-stream', ...goOn }, signal)
  try {
    // fetch may lose the signal: what it keeps of it can be collected as garbage once the answer has begun.
    yield* readEvents(Readable.fromWeb((body ?? new ReadableStream()) as ReadableStream, { signal }))
  } catch (error) {
    if (!signal.aborted) throw unreachable(address.url, error)
  }
}

/** A line of a refused change, as `weir check` writes them. */
function problemLine(problem: unknown): string {
  if (typeof problem !== 'object' || problem === null) return String(problem)
  const { path, message, line, column }: { path?: unknown; message?: unknown; line?: unknown; column?: unknown } =
    problem
  const place = typeof line === 'number' ? `${line}:${String(column)}  ` : ''
  return `${place}${path === '' || path === undefined ? '' : `${String(path)}: `}${String(message)}`
}

function refusal(url: string, { status, body, text }: Answered<unknown>): WeirError {
  const { detail, problems }: { detail?: unknown; problems?: unknown } = Object(body)
  const words = typeof detail === 'string' ? detail : text.slice(0, 200)
  if (status === 422 && Array.isArray(problems)) {
    return new WeirError(
      'POLICY_INVALID',
      `The policy has mistakes; nothing was changed.\n  ${problems.map(problemLine).join('\n  ')}`,
    )
  }
  if (status >= 500 || status === 429) {
    return new WeirError('CONSOLE_UNAVAILABLE', `The console at ${url} could not do it: ${words}`)
  }
  if (status === 401) {
    return new WeirError(
      'CONSOLE_REFUSED',
      `The console at ${url} does not know the token. Does WEIR_ADMIN_TOKEN hold it?`,
    )
  }
  // The input names something that does not exist or is malformed.
  return new WeirError(status === 400 || status === 404 ? 'COMMAND_INVALID' : 'CONSOLE_REFUSED', words)
}
