import type { PresetName } from '@weir/meters/meter.ts'
import type { Problem } from '@weir/runtime/problem.ts'

/** Programs that wait longer wait for ever: an agent is to stop, and to say why. */
const worthWaitingSeconds = 60

/** A refusal as the supplier's own client programs read it. */
export interface SupplierRefusal {
  readonly body: object
  /** For `x-should-retry`, which the programs of both suppliers follow. */
  readonly shouldRetry: boolean
}

/** JSON-RPC leaves the numbers from this one down to servers. */
const rpcServerError = -32_000

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

/**
 * Writes a problem as an error of OpenAI, of Anthropic or of MCP. Undefined for other APIs, whose programs read the
 * problem.
 *
 * @param retryAfter whole seconds; undefined where waiting does not help.
 */
export function supplierRefusal(
  preset: PresetName | undefined,
  found: Problem,
  retryAfter: number | undefined,
): SupplierRefusal | undefined {
  const { status, detail: message, type: urn } = found
  const shouldRetry = retryAfter !== undefined && retryAfter <= worthWaitingSeconds
  const isUsedUp = status === 429 && !shouldRetry
  if (preset === 'anthropic') {
    const type = isUsedUp ? 'billing_error' : (anthropicTypes[status] ?? 'invalid_request_error')
    return { body: { type: 'error', error: { type, message } }, shouldRetry }
  }
  // Its programs know which request they sent: Weir reads no id.
  const rpc = { jsonrpc: '2.0', id: null, error: { code: rpcServerError, message, data: found } }
  if (preset === 'mcp') return { body: rpc, shouldRetry }
  if (preset !== 'openai') return undefined
  const word = urn.slice(Math.max(urn.lastIndexOf(':'), urn.lastIndexOf('#')) + 1)
  const usedUp = ['insufficient_quota', 'insufficient_quota'] as const
  const [type, code] = isUsedUp
    ? usedUp
    : (openaiErrors[status] ?? ['invalid_request_error', word.replaceAll('-', '_')])
  return { body: { error: { message, type, param: null, code } }, shouldRetry }
}
