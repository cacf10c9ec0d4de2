import { expect, it } from 'vitest'
import { notImplemented, toServerException } from './exception.ts'

it('takes the code from the engine’s text and unwraps what is nested', () => {
  const nested =
    'Code: 73. DB::Exception: Code: 73. DB::Exception: Unknown format X. (UNKNOWN_FORMAT) (version 26.7.2.1). (UNKNOWN_FORMAT)'
  const exception = toServerException(new Error(nested))
  expect([exception.clickhouseCode, exception.message]).toEqual([
    73,
    'Code: 73. DB::Exception: Unknown format X. (UNKNOWN_FORMAT)',
  ])
})

it('reports what is no exception of the engine as an unknown one, and its own refusals by name', () => {
  expect(toServerException('boom').message).toBe('Code: 1002. DB::Exception: boom. (UNKNOWN_EXCEPTION)')
  expect(notImplemented('This').message).toMatch(
    /^Code: 48\. DB::Exception: This is not implemented .*\(NOT_IMPLEMENTED\)$/,
  )
})
