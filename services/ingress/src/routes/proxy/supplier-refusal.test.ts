import { badRequest, type Problem, problem } from '@weir/runtime/problem.ts'
import { expect, test } from 'vitest'
import { withOwnWords } from '../../http/own-refusal.ts'
import { type RefusalForm, supplierRefusal } from './supplier-refusal.ts'

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
    expect(supplierRefusal({ preset: 'openai' }, found, wait)).toEqual({
      body: { error: { message, type, param: null, code } },
      shouldRetry,
    })
    expect(supplierRefusal({ preset: 'anthropic' }, found, wait)).toEqual({
      body: { type: 'error', error: { type: anthropic, message } },
      shouldRetry,
    })
    expect(supplierRefusal({ preset: 'mcp' }, found, wait)?.body).toMatchObject({ id: null, error: { message } })
    expect(supplierRefusal({}, found, wait)).toBeUndefined()
  },
)

test('A message of JSON-RPC is answered under its id, by an error or by a result for the model', () => {
  const found = { ...usedUp, 'violated-policies': ['calls-day'] }
  const answer = (form: RefusalForm) => supplierRefusal({ preset: 'mcp', id: 7, isCall: true, ...form }, found, 9)
  const data = { retry_after: 9, limit: 'calls-day' }
  expect(answer({})).toEqual({
    status: 200,
    body: { jsonrpc: '2.0', id: 7, error: { code: -32029, message: 'Used up.', data } },
    shouldRetry: true,
  })
  const content = [{ type: 'text', text: 'Used up.' }]
  expect(answer({ as: 'tool_result' })?.body).toEqual({ jsonrpc: '2.0', id: 7, result: { isError: true, content } })
  expect(answer({ as: 'tool_result', isCall: false })?.body).toMatchObject({ error: { code: -32029 } })
  expect(answer({ as: 'problem' })).toBeUndefined()
})

test('A policy chooses the form, the words, and whether trying again helps', () => {
  const words = { as: 'openai', code: 'team_cap', retry: 'never' } as const
  expect(supplierRefusal(words, usedUp, 1)).toEqual({
    body: { error: { message: 'Used up.', type: 'insufficient_quota', param: null, code: 'team_cap' } },
    shouldRetry: false,
  })
  expect(supplierRefusal({ preset: 'anthropic', retry: 'after', code: 'team_cap' }, usedUp, 86_400)).toEqual({
    body: { type: 'error', error: { type: 'team_cap', message: 'Used up.' } },
    shouldRetry: true,
  })
})

test("A policy's message is that of every form, and a problem's detail", () => {
  const own = withOwnWords(usedUp, { contentType: 'application/json', message: 'Ask Ada.' })
  expect(own).toEqual({ ...usedUp, detail: 'Ask Ada.' })
  expect(supplierRefusal({ as: 'openai' }, own, 1)?.body).toMatchObject({ error: { message: 'Ask Ada.' } })
})
