import { badRequest, type Problem, problem } from '@weir/runtime/problem.ts'
import { expect, test } from 'vitest'
import { supplierRefusal } from './supplier-refusal.ts'

const usedUp: Problem = {
  type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  title: '',
  status: 429,
  detail: 'Used up.',
}

test.each([
  ['a limit that has capacity soon', usedUp, 7, ['requests', 'rate_limit_exceeded'], 'rate_limit_error', true],
  ['a month that is used up', usedUp, 86_400, ['insufficient_quota', 'insufficient_quota'], 'billing_error', false],
  [
    'no key',
    problem('unauthorized', '', 401, ''),
    undefined,
    ['invalid_request_error', 'invalid_api_key'],
    'authentication_error',
    false,
  ],
  [
    'a cost above the size',
    problem('cost-exceeds-limit', '', 403, ''),
    undefined,
    ['invalid_request_error', 'cost_exceeds_limit'],
    'permission_error',
    false,
  ],
  [
    'what is down',
    problem('temporary-reduced-capacity', '', 503, ''),
    1,
    ['server_error', 'server_error'],
    'api_error',
    true,
  ],
  [
    'a malformed request',
    badRequest('', 400),
    undefined,
    ['invalid_request_error', 'bad_request'],
    'invalid_request_error',
    false,
  ],
] as const)(
  'A refusal for %s has the form of each supplier',
  (_, found, wait, [type, code], anthropic, shouldRetry) => {
    const message = found.detail
    expect(supplierRefusal('openai', found, wait)).toEqual({
      body: { error: { message, type, param: null, code } },
      shouldRetry,
    })
    expect(supplierRefusal('anthropic', found, wait)).toEqual({
      body: { type: 'error', error: { type: anthropic, message } },
      shouldRetry,
    })
    const error = { code: -32_000, message, data: found }
    expect(supplierRefusal('mcp', found, wait)?.body).toEqual({ jsonrpc: '2.0', id: null, error })
    expect(supplierRefusal(undefined, found, wait)).toBeUndefined()
  },
)
