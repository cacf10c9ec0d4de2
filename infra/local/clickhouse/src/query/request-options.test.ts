import { describe, expect, it } from 'vitest'
import { contentType } from '../http/respond.ts'
import { readOptions } from './request-options.ts'

const read = (query: string, headers = {}) => readOptions(new URLSearchParams(query), headers)

describe('readOptions', () => {
  it('separates parameters, settings and what the server reads itself', () => {
    const options = read(
      'query=SELECT+1&param_x=5&max_threads=2&database=d&user=default&wait_end_of_query=1&log_comment=x',
    )
    expect(options).toMatchObject({
      query: 'SELECT 1',
      params: { x: '5' },
      settings: { max_threads: '2' },
      database: 'd',
      whole: true,
    })
  })

  it('prefers the URL to the headers', () => {
    const headers = { 'x-clickhouse-database': 'h', 'x-clickhouse-format': 'CSV' }
    expect(read('database=u', headers)).toMatchObject({ database: 'u', defaultFormat: 'CSV' })
  })

  it('refuses what could break out of a SET', () => {
    expect(() => read('a%20=%201,%20b=1')).toThrow('Code: 36')
  })
})

it.each([
  ['JSON', 'application/json'],
  ['JSONEachRow', 'application/x-ndjson'],
  ['TSVWithNames', 'text/tab-separated-values'],
  ['CSVWithNames', 'text/csv; charset=UTF-8; header=present'],
  ['Native', 'application/octet-stream'],
  ['Pretty', 'text/plain'],
])('the content type of %s is %s', (format, type) => {
  expect(contentType(format)).toContain(type)
})
