import { ClickHouseError } from '@clickhouse/client'
import { expect, test } from 'vitest'
import { adviceFor } from './refusals.ts'

const access = { username: 'u', password: '', userVariable: 'U', passwordVariable: 'P', ca: undefined }
const reset = Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })

const adviceOn = (error: Error, url: string, more = {}, hasAnswered = false) =>
  adviceFor(error, { access: { ...access, ...more }, url: new URL(url), database: 'weir', hasAnswered })

test('A connection that a server closes is a reason to look at the protocol until it has answered, and none over TLS', () => {
  expect(adviceOn(reset, 'http://h:8443')).toContain('WEIR_CLICKHOUSE_URL must begin with https://')
  expect(adviceOn(reset, 'http://h:8443', {}, true)).toBeUndefined()
  expect(adviceOn(reset, 'https://h:8443')).toBeUndefined()
})

test('A refused password names its variables, each once', () => {
  const refused = new ClickHouseError({ message: 'no', code: '516', type: 'AUTHENTICATION_FAILED' })
  const advice = (userVariable: string) => adviceOn(refused, 'http://h', { userVariable })?.replace(/.*see /, '')
  expect([advice('P'), advice('U')]).toEqual(['P', 'P and U'])
})

test('A constraint that forbids a setting of a statement is named with the user whose profile has it', () => {
  const message = 'Setting join_use_nulls should not be changed'
  const refused = new ClickHouseError({ message, code: '452', type: 'SETTING_CONSTRAINT_VIOLATION' })
  expect(adviceOn(refused, 'http://h')).toMatch(
    /constraint of the user u of U forbids .* \(code 452: Setting join_use_nulls/,
  )
})
