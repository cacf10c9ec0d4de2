import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, describe, expect, it } from 'vitest'
import { randomTable, startClickhouse } from '../../support/servers/clickhouse.ts'

const clickhouse = await startClickhouse()
afterAll(() => clickhouse.close())

async function createTable(columns = 'a Int32, s String'): Promise<string> {
  const table = randomTable()
  await clickhouse.ask(`CREATE TABLE ${table} (${columns}) ENGINE = MergeTree ORDER BY tuple()`)
  return table
}

/** Text that the engine, left alone with it behind an INSERT, would end at and then run as SQL. */
const hostile = 'x\n\n;SELECT 1;\n\nINSERT INTO t VALUES (1)\n\0\\'

const formats = (
  'JSONEachRow JSONCompactEachRow JSON JSONColumns TabSeparated TSVWithNamesAndTypes TSKV CSV CSVWithNames Values ' +
  'Native RowBinary RowBinaryWithNamesAndTypes Parquet Arrow ArrowStream ORC Avro MsgPack BSONEachRow'
).split(' ')

describe('formats', () => {
  it.each(formats)('stores rows in %s whatever bytes they hold, and never runs them', async (format) => {
    const rows = `SELECT toInt32(number) AS a, concat({s:String}, toString(number)) AS s FROM numbers(1000)`
    const settings = { param_s: hostile.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\0', '\\0') }
    const data = await (
      await clickhouse.post({ ...settings, default_format: format, output_format_arrow_string_as_string: '1' }, rows)
    ).arrayBuffer()
    const table = await createTable()
    const answer = await clickhouse.post({ query: `INSERT INTO ${table} FORMAT ${format}` }, new Uint8Array(data))
    expect(await answer.text()).toBe('')
    expect(JSON.parse(answer.headers.get('x-clickhouse-summary') ?? '')).toMatchObject({ written_rows: '1000' })
    const want = await clickhouse.ask(`SELECT count(), sum(cityHash64(a, s)) FROM (${rows})`, settings)
    expect(await clickhouse.ask(`SELECT count(), sum(cityHash64(a, s)) FROM ${table}`)).toBe(want)
  })
})

describe('shapes of an insert', () => {
  it.each([
    ['all in the body', '', 'INSERT INTO t FORMAT JSONEachRow\n{"a":1,"s":"x"}\n\n{"a":2,"s":"y"}'],
    ['values in the body', '', "INSERT INTO t VALUES (1, 'x;\n\n'), (2, '\\'y')"],
    ['values behind the URL', 'INSERT INTO t (a, s) VALUES', "(1, 'x'), (2, 'y')"],
    ['settings before the format', 'INSERT INTO t SETTINGS max_threads = 1 FORMAT CSV', '1,x\n2,"y\n\n"'],
    ['columns and comments', '/* c */ INSERT INTO TABLE t (`s`, "a") -- c\n FORMAT TSV', 'x\t1\ny\t2\n'],
    ['no line break at the end', 'INSERT INTO t FORMAT TSV', '1\tx\n2\ty'],
  ])('%s', async (_, query, body) => {
    const table = await createTable()
    const named = (text: string) => text.replace(/\bt\b/, table)
    const answer = await clickhouse.post(query === '' ? {} : { query: named(query) }, query === '' ? named(body) : body)
    expect(await answer.text()).toBe('')
    expect(await clickhouse.ask(`SELECT sum(a), count() FROM ${table}`)).toBe('3\t2')
  })

  it('takes a stream of rows and a chunked body larger than what is held in memory', async () => {
    const table = await createTable()
    const rows = function* () {
      for (let a = 0; a < 100_000; a++) yield { a, s: 'x'.repeat(50) }
    }
    await clickhouse.client.insert({ table, values: Readable.from(rows()), format: 'JSONEachRow' })
    expect(await clickhouse.ask(`SELECT count(), sum(a) FROM ${table}`)).toBe('100000\t4999950000')
  })

  it('stores nothing of an insert whose client disconnects halfway', async () => {
    const table = await createTable()
    const leaving = new AbortController()
    const { promise: delayed, resolve: goOn } = Promise.withResolvers<void>()
    const values = Readable.from(
      (async function* () {
        for (let a = 0; a < 10_000; a++) yield { a, s: 'x'.repeat(100) }
        await delayed
        yield { a: 1, s: 'y' }
      })(),
    )
    const insert = clickhouse.client.insert({ table, values, format: 'JSONEachRow', abort_signal: leaving.signal })
    const spooled = async () => (await readdir(join(clickhouse.server.dir, 'data/incoming'))).length
    await expect.poll(spooled, { timeout: 10_000 }).toBe(1)
    leaving.abort()
    goOn()
    await expect(insert).rejects.toThrow()
    await expect.poll(spooled, { timeout: 10_000 }).toBe(0)
    expect(await clickhouse.ask(`SELECT count() FROM ${table}`)).toBe('0')
  })

  it('names the row that cannot be read, and stores none', async () => {
    const table = await createTable()
    const answer = await clickhouse.post(
      { query: `INSERT INTO ${table} FORMAT JSONEachRow` },
      '{"a":1,"s":"x"}\n{"a":"zz"}\n',
    )
    expect(answer.status).toBe(400)
    expect(await answer.text()).toContain('(at row 2)')
    expect(await clickhouse.ask(`SELECT count() FROM ${table}`)).toBe('0')
  })
})

it('writes one block as one part', async () => {
  const table = await createTable('a Int32')
  const data = Array.from({ length: 20_000 }, (_, a) => `{"a":${a}}\n`).join('')
  await clickhouse.post({ query: `INSERT INTO ${table} FORMAT JSONEachRow` }, data)
  const parts = `SELECT count(), sum(rows) FROM system.parts WHERE table = '${table}' AND active`
  expect(await clickhouse.ask(parts)).toBe('1\t20000')
})
