import { afterAll, describe, expect, it } from 'vitest'
import { randomTable, startClickhouse } from '../../support/servers/clickhouse.ts'

const clickhouse = await startClickhouse()
afterAll(() => clickhouse.close())

const threads = (parameters = {}) => clickhouse.ask("SELECT getSetting('max_threads')", parameters)

describe('what comes with a request ends with it', () => {
  it('keeps a deduplication token to its own insert: the next insert without one is stored', async () => {
    const table = randomTable()
    await clickhouse.ask(
      `CREATE TABLE ${table} (a Int32) ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 100`,
    )
    const insert = (values: object[], token?: string) =>
      clickhouse.client.insert({
        table,
        values,
        format: 'JSONEachRow',
        ...(token === undefined ? {} : { clickhouse_settings: { insert_deduplication_token: token } }),
      })
    await insert([{ a: 1 }], 'one')
    await insert([{ a: 2 }])
    await insert([{ a: 3 }], 'one')
    expect(await clickhouse.ask(`SELECT a FROM ${table} ORDER BY a`)).toBe('1\n2')
  })

  it('keeps settings of the URL, SET, USE and parameters to their request, also with many at once', async () => {
    const before = await threads()
    expect(await threads({ max_threads: '7' })).toBe('7')
    await clickhouse.ask('SET max_threads = 9')
    await clickhouse.ask('USE system')
    await clickhouse.ask('SELECT {p:Int32}', { param_p: '1' })
    const seen = await Promise.all(
      Array.from({ length: 40 }, (_, index) => (index % 2 ? threads() : threads({ max_threads: '5' }))),
    )
    expect(new Set(seen)).toEqual(new Set([before, '5']))
    expect(await threads()).toBe(before)
    expect(await clickhouse.ask('SELECT currentDatabase()')).toBe('default')
    await expect(clickhouse.ask('SELECT {p:Int32}')).rejects.toThrow('Code: 456')
  })

  it('applies settings of the statement, and answers a refused one as the engine words it', async () => {
    expect(await clickhouse.ask("SELECT getSetting('max_block_size') SETTINGS max_block_size = 77")).toBe('77')
    const unknown = await clickhouse.post({ no_such_setting: '1' }, 'SELECT 1')
    expect([unknown.status, await unknown.text()]).toEqual([
      404,
      expect.stringContaining("Code: 115. DB::Exception: Unknown setting 'no_such_setting'"),
    ])
    expect(
      (await clickhouse.post({ database: 'no_such_database' }, 'SELECT 1')).headers.get('x-clickhouse-exception-code'),
    ).toBe('81')
  })
})
