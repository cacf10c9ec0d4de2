import { expect, it } from 'vitest'
import type { Sources } from '../sources.ts'
import { openConsole } from '../testing/open-console.ts'
import type { UsageRow } from './usage-queries.ts'
import type { UsageSource } from './usage-source.ts'

const sums = { allowed: '1', denied: '0', cost: '1' }
/** 101 values, the most frequent first; one more often than a number of JavaScript can say. */
const values = Array.from({ length: 101 }, (_, at): UsageRow => {
  return { ...sums, count: at === 0 ? '9007199254740993' : String(200 - at), route: `GET /${at}` }
})

it('the values of a column come 100 a page, with exact counts, and a page’s cursor is of its question alone', async () => {
  const asked: Parameters<UsageSource['askUsage']>[] = []
  const { ask } = openConsole({
    askUsage: async (...question) => {
      asked.push(question)
      return question[2]?.after === undefined ? values : values.slice(100)
    },
  })
  const path = '/v1/dimensions/route?prefix=GET&from=2026-11-01&to=2026-11-02'
  const first = await ask(path)
  expect(first.body).toContain('{"value":"GET /0","count":9007199254740993}')
  const { items, next, ...rest } = first.json()
  expect([items.length, items[99]]).toEqual([100, { value: 'GET /99', count: 101 }])
  expect(rest).toMatchObject({ from: '2026-11-01T00:00:00.000Z', source: 'usage_total_15m', complete_through: null })
  expect(first.headers.link).toContain(`after=${next}>; rel="next"`)
  expect((await ask(`${path}&after=${next}`)).json()).toMatchObject({
    next: null,
    items: [{ value: 'GET /100', count: 100 }],
  })
  expect(asked[1]?.[2]).toEqual({ after: ['-101', 'GET /99'], rowsMax: 101 })
  expect(asked[0]?.[1]).toMatchObject({ by: ['route'], step: 'total', namePrefix: 'GET' })
  for (const other of ['/v1/dimensions/route?prefix=P', '/v1/dimensions/method?prefix=GET']) {
    const refused = await ask(`${other}&from=2026-11-01&to=2026-11-02&after=${next}`)
    expect([refused.statusCode, refused.json().type]).toEqual([400, 'urn:weir:problem:cursor-invalid'])
  }
})

it('what no column is called is 404, and what only decisions have takes a subject, or a day', async () => {
  const { ask } = openConsole()
  expect((await ask('/v1/dimensions/colour')).json().detail).toBe('There is no column "colour"')
  expect((await ask('/v1/dimensions/ip?from=now-2d')).json().detail).toContain('name a subject')
  expect((await ask('/v1/dimensions/ip?from=now-24h')).statusCode).toBe(200)
  expect((await ask('/v1/dimensions/ip?subject=acme')).statusCode).toBe(200)
  expect((await ask('/v1/dimensions/parents?within=acme')).statusCode).toBe(200)
})
