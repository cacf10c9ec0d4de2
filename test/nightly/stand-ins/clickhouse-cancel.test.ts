import { randomUUID } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { randomTable, startClickhouse } from '../../support/servers/clickhouse.ts'

const clickhouse = await startClickhouse()
afterAll(() => clickhouse.close())

const endless = 'SELECT count() FROM numbers(100000000000) WHERE sipHash64(number) = 1'
const running = async (id: string) =>
  Number(await clickhouse.ask(`SELECT count() FROM system.processes WHERE query_id = '${id}'`))
const started = (id: string) => expect.poll(() => running(id), { timeout: 20_000 }).toBe(1)
const gone = (id: string) => expect.poll(() => running(id), { timeout: 20_000 }).toBe(0)

it.each([
  ['JSON', endless],
  ['JSONEachRow', endless],
  [
    'JSONEachRow',
    'SELECT number, sleepEachRow(0.0001), randomString(1000) FROM numbers(100000000) SETTINGS max_block_size = 1000',
  ],
] as const)('stops the query of a client that disconnects (%s, %s)', async (format, sql) => {
  const id = randomUUID()
  const leaving = new AbortController()
  const query = clickhouse.client.query({ query: sql, query_id: id, abort_signal: leaving.signal, format })
  const outcome = query.then((result) => result.text()).catch(() => 'aborted')
  await started(id)
  leaving.abort()
  await outcome
  await gone(id)
})

it('kills queries by the id that the client gave them, also when no more may run', async () => {
  const ids = Array.from({ length: 20 }, () => randomUUID())
  const codes = ids.map((id) =>
    clickhouse.post({ query_id: id }, endless).then((answer) => answer.headers.get('x-clickhouse-exception-code')),
  )
  const killAll = async () => {
    await Promise.all(ids.map((id) => clickhouse.ask(`KILL QUERY WHERE query_id = '${id}' ASYNC`)))
    return await Promise.race([
      Promise.all(codes),
      new Promise<undefined>((resolve) => setImmediate(resolve, undefined)),
    ])
  }
  await expect.poll(killAll, { timeout: 60_000 }).toEqual(ids.map(() => '394'))
})

it('refuses a second query under the id of a running one', async () => {
  const id = randomUUID()
  const first = clickhouse.post({ query_id: id }, endless)
  await started(id)
  expect((await clickhouse.post({ query_id: id }, 'SELECT 1')).headers.get('x-clickhouse-exception-code')).toBe('216')
  await clickhouse.ask(`KILL QUERY WHERE query_id = '${id}' ASYNC`)
  expect((await first).headers.get('x-clickhouse-exception-code')).toBe('394')
})

it('runs short queries while a long one runs, and ends the long one at max_execution_time', async () => {
  const long = clickhouse.post({ max_execution_time: '2' }, endless)
  expect(await clickhouse.ask('SELECT 1')).toBe('1')
  const ended = await long
  expect([ended.status, ended.headers.get('x-clickhouse-exception-code')]).toEqual([408, '159'])
})

it('finishes what runs before a SIGTERM ends it, and keeps its rows', async () => {
  const table = randomTable()
  const id = randomUUID()
  await clickhouse.ask(`CREATE TABLE ${table} (a UInt64) ENGINE = MergeTree ORDER BY a`)
  const insert = clickhouse.ask(
    `INSERT INTO ${table} SELECT number + sleepEachRow(0.01) FROM numbers(100) SETTINGS max_block_size = 10`,
    { query_id: id },
  )
  await started(id)
  await Promise.all([insert, clickhouse.server.kill('SIGTERM')])
  await clickhouse.server.restart()
  expect(await clickhouse.ask(`SELECT count() FROM ${table}`)).toBe('100')
})
