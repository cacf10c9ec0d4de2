import { checkConfig } from '@weir/runtime/read-config.ts'
import { expect, test } from 'vitest'
import { clickhouseVariables } from './variables.ts'

const parameters = 'must be without #, and without ? but for clickhouse_setting_NAME=VALUE'

test.each([
  ['http://h:8123/?password=hidden', parameters],
  ['http://h:8123/?clickhouse_setting_a=1&password=hidden', parameters],
  ['https://u:hid#den@h:8443', parameters],
  ['https://u:hid%zz@h:8443', 'must have each % encoded as %25'],
])('%j is no address of ClickHouse, and is not repeated', (address, problem) => {
  const problems = [`WEIR_CLICKHOUSE_URL ${problem}, but is something else`]
  expect(checkConfig(clickhouseVariables, { WEIR_CLICKHOUSE_URL: address })).toEqual({ kind: 'problems', problems })
})

test('An address may set what ClickHouse takes as settings of a request', () => {
  const address = 'http://h:8123/?clickhouse_setting_max_memory_usage=1&clickhouse_setting_max_threads=2'
  expect(checkConfig(clickhouseVariables, { WEIR_CLICKHOUSE_URL: address }).kind).toBe('config')
})

test('Several addresses are those of a cluster, which has to be named', () => {
  const addresses = { WEIR_CLICKHOUSE_URL: 'http://u:p@a1:8123,a2:8123;b1:8123' }
  const problems = ['WEIR_CLICKHOUSE_URL names several servers: WEIR_CLICKHOUSE_CLUSTER must name their cluster']
  expect(checkConfig(clickhouseVariables, addresses)).toEqual({ kind: 'problems', problems })
  const named = { ...addresses, WEIR_CLICKHOUSE_CLUSTER: 'main' }
  expect(checkConfig(clickhouseVariables, named).kind).toBe('config')
  const quoted = checkConfig(clickhouseVariables, { ...named, WEIR_CLICKHOUSE_CLUSTER: "main'" })
  expect(quoted).toMatchObject({ problems: [expect.stringContaining('WEIR_CLICKHOUSE_CLUSTER must be a name')] })
  const wrong = checkConfig(clickhouseVariables, { ...named, WEIR_CLICKHOUSE_URL: 'http://a1:8123,a2:port' })
  expect(wrong).toMatchObject({ problems: [expect.stringContaining('WEIR_CLICKHOUSE_URL must be a URL')] })
})
