import { checkConfig } from '@weir/runtime/read-config.ts'
import { expect, test } from 'vitest'
import { clickhouseVariables } from './variables.ts'

test.each([
  ['http://h:8123/?password=hidden', 'must be without ? and #'],
  ['https://u:hid#den@h:8443', 'must be without ? and #'],
  ['https://u:hid%zz@h:8443', 'must have each % encoded as %25'],
])('%j is no address of ClickHouse, and is not repeated', (address, problem) => {
  const problems = [`WEIR_CLICKHOUSE_URL ${problem}, but is something else`]
  expect(checkConfig(clickhouseVariables, { WEIR_CLICKHOUSE_URL: address })).toEqual({ kind: 'problems', problems })
})
