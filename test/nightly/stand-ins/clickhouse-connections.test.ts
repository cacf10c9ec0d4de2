import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { expect, inject, it } from 'vitest'
import { forTest } from '../../support/opened.ts'

it('A connection that made the database is not ended while it serves a query', async () => {
  const client = await forTest(connectClickhouse(inject('clickhouseUrl'), 'test'))
  await client.createDatabase()
  // One query after the other until connections of before would have rested too long.
  const endsAt = performance.now() + 4_000
  while (performance.now() < endsAt) {
    const answer = await client.query({ query: 'SELECT sleep(0.3) AS slept', format: 'JSONEachRow' })
    expect(await answer.json()).toEqual([{ slept: 0 }])
  }
})
