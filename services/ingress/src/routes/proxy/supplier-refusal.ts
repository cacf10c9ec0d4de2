import type { IncomingMessage } from 'node:http'
import type { RefusalWords } from '@weir/core/limits/refusal.ts'
import type { RequestMeasure } from '@weir/meters/measure-request.ts'
import type { PresetName } from '@weir/meters/meter.ts'
import type { Route } from '@weir/policy/policy.ts'
import type { Problem } from '@weir/runtime/problem.ts'
import type { PolicyView } from '../../policy-view.ts'

/** Programs that wait longer wait for ever: an agent is to stop, and to say why. */
const worthWaitingSeconds = 60

/** A refusal as a client's program reads it. */
interface SupplierRefusal {
  /** Undefined for the problem's. */
  readonly status?: number
  readonly body: object
  /** For `x-should-retry`, which the programs of OpenAI and Anthropic follow. */
  readonly shouldRetry: boolean
}

/** By what the form of a refusal is chosen. */
export interface RefusalForm extends Omit<RefusalWords, 'message'> {
  /** Of the route's meter. */
  readonly preset?: PresetName | undefined
  /** Of a message of JSON-RPC, and whether it calls a tool. */
  readonly id?: string | number | undefined
  readonly isCall?: boolean
}

/** The form of a problem of this request. */
export const formOf = (
  view: Pick<PolicyView, 'presetOf'>,
  { headers: { host } }: Pick<IncomingMessage, 'headers'>,
  route: Route,
  measure?: RequestMeasure,
): RefusalForm => {
  const isCall = (measure?.most.get('calls') ?? 0) > 0
  return { preset: view.presetOf(host, route), id: measure?.id, isCall }
}

/** Of OpenAI's errors, by status: those that are not here are the request's fault. */
const openaiErrors: Readonly<Record<number, readonly [type: string, code: string]>> = {
  401: ['invalid_request_error', 'invalid_api_key'],
  429: ['requests', 'rate_limit_exceeded'],
  503: ['server_error', 'server_error'],
}
const anthropicTypes: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'api_error',
}

/** Of JSON-RPC: a request that was refused, and one that could not be served. */
const [refusedCode, failedCode] = [-32029, -32603]

/**
 * Writes a problem as an error of OpenAI or of Anthropic, or as a message of JSON-RPC: an error, or a tool's result,
 * which the model reads. Undefined for other APIs, whose programs read the problem.
 *
 * @param retryAfter whole seconds; undefined where waiting does not help.
 */
export function supplierRefusal(
  { preset, id, isCall, as = preset === 'mcp' ? 'jsonrpc' : preset, retry, code: ownCode }: RefusalForm,
  found: Problem,
  retryAfter: number | undefined,
): SupplierRefusal | undefined {
  const { status, detail: message, type: urn } = found
  const helps = retryAfter !== undefined && retryAfter <= worthWaitingSeconds
  const shouldRetry = retry === undefined ? helps : retry === 'after'
  const isUsedUp = status === 429 && !shouldRetry
  if (as === 'jsonrpc' || as === 'tool_result') {
    const [limit] = [found['violated-policies']].flat()
    const data = { code: ownCode, retry_after: retryAfter, limit }
    const error = { code: status === 403 || status === 429 ? refusedCode : failedCode, message, data }
    const result = { isError: true, content: [{ type: 'text', text: message }] }
    const jsonrpc = '2.0'
    // Without an id it is no response to any message, but programs show its words.
    if (id === undefined) return { body: { jsonrpc, id: null, error }, shouldRetry }
    return {
      status: 200,
      body: { jsonrpc, id, ...(as === 'jsonrpc' || isCall !== true ? { error } : { result }) },
      shouldRetry,
    }
  }
  if (as === 'anthropic') {
    const type = isUsedUp ? 'billing_error' : (anthropicTypes[status] ?? 'invalid_request_error')
    return { body: { type: 'error', error: { type: ownCode ?? type, message } }, shouldRetry }
  }
  if (as !== 'openai') return undefined
  const word = urn.slice(Math.max(urn.lastIndexOf(':'), urn.lastIndexOf('#')) + 1)
  const usedUp = ['insufficient_quota', 'insufficient_quota'] as const
  const [type, code] = isUsedUp
    ? usedUp
    : (openaiErrors[status] ?? ['invalid_request_error', word.replaceAll('-', '_')])
  return { body: { error: { message, type, param: null, code: ownCode ?? code } }, shouldRetry }
}
