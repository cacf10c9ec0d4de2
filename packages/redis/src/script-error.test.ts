import { expect, test } from 'vitest'
import { readScriptError } from './script-error.ts'

function replyError(message: string): Error {
  const error = new Error(message)
  error.name = 'ReplyError'
  return error
}

test.each([
  ['NOSCRIPT No matching script. Please use EVAL.', 'NOSCRIPT', 'no'],
  ["OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @user_script:9.", 'OOM', 'no'],
  ['ERR Error running script (call to f_1f): @user_script:9: @user_script: 9: -OOM command not allowed', 'OOM', 'no'],
  ["READONLY You can't write against a read only replica.", 'READONLY', 'no'],
  ['LOADING Redis is loading the dataset in memory', 'LOADING', 'no'],
  ['DECIDEARGS the time is neither empty nor microseconds', 'DECIDEARGS', 'no'],
  ['ERR user_script:9: Script attempted to access nonexistent global variable', 'ERR', 'unknown'],
  ['wholly unexpected', 'ERR', 'unknown'],
])('%s', (message, code, charged) => {
  expect(readScriptError(replyError(message))).toMatchObject({ code, charged })
})

test('a connection that broke leaves the charge unknown; a command that was never written did not charge', () => {
  expect(readScriptError(new Error('Connection is closed.'))).toMatchObject({ code: 'CONNECTION', charged: 'unknown' })
  const notSent = new Error("Stream isn't writeable and enableOfflineQueue options is false")
  expect(readScriptError(notSent)).toMatchObject({ code: 'NOT_SENT', charged: 'no' })
})
