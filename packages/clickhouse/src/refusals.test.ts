import { ClickHouseError } from '@clickhouse/client'
import { expect, test } from 'vitest'
import { adviceFor } from './refusals.ts'

const access = { username: 'u', password: '', userVariable: 'U', passwordVariable: 'P', ca: undefined }
const reset = Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })

test('A connection that a server closes is a reason to look at the protocol in plain text, and none over TLS', () => {
  const advice = (url: string) => adviceFor(reset, access, new URL(url), 'weir')
  expect(advice('http://h:8443')).toContain('WEIR_CLICKHOUSE_URL must begin with https://')
  expect(advice('https://h:8443')).toBeUndefined()
})

test('A refused password names its variables, each once', () => {
  const refused = new ClickHouseError({ message: 'no', code: '516', type: 'AUTHENTICATION_FAILED' })
  const advice = (userVariable: string) =>
    adviceFor(refused, { ...access, userVariable }, new URL('http://h'), 'weir')?.replace(/.*see /, '')
  expect([advice('P'), advice('U')]).toEqual(['P', 'P and U'])
})
