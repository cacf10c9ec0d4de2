import { afterAll, expect, it } from 'vitest'
import { randomTable, startClickhouse } from '../../support/servers/clickhouse.ts'

const clickhouse = await startClickhouse()
afterAll(() => clickhouse.close())

it('serves the requests that clickhouse-connect (Python) makes, each of which names a session', async () => {
  const table = randomTable()
  const common = {
    session_id: randomTable(),
    date_time_input_format: 'best_effort',
    cancel_http_readonly_queries_on_client_close: '1',
  }
  const send = async (parameters: Record<string, string>, body: string | Uint8Array<ArrayBuffer>, headers = {}) => {
    const answer = await clickhouse.post({ ...common, ...parameters }, body, { ...headers })
    if (!answer.ok) throw new Error(await answer.text())
    return Buffer.from(await answer.arrayBuffer())
  }
  expect((await send({}, 'SELECT version(), timezone()')).toString()).toMatch(/^[\d.]+\t\w/)
  const settings = await send(
    { enable_http_compression: '1', send_progress_in_http_headers: '1', wait_end_of_query: '1' },
    'SELECT name, value, readonly FROM system.settings LIMIT 10000\n FORMAT Native',
  )
  expect(settings.includes('max_threads')).toBe(true)
  // Its probe of the native protocol: without the block info it falls back to what works everywhere.
  const probe = await send({ client_protocol_version: '54405' }, 'SELECT 1 AS check\n FORMAT Native')
  expect(probe.subarray(0, 8).toString('latin1')).toBe('\x01\x01\x05check')
  await send({}, `CREATE TABLE ${table} (id UInt32, name String) ENGINE MergeTree ORDER BY id`)
  await send({ query_id: '' }, `DESCRIBE TABLE ${table}\n FORMAT Native`)
  const block = await send({}, "SELECT toUInt32(7) AS id, 'a\n\n;b' AS name FORMAT Native")
  const body = Buffer.concat([Buffer.from(`INSERT INTO ${table} (\`id\`, \`name\`) FORMAT Native\n`), block])
  await send({}, body, { 'content-type': 'application/octet-stream' })
  expect(
    (await send({ param_x: '7' }, `SELECT name FROM ${table} WHERE id = {x:Int32} FORMAT JSONEachRow`)).toString(),
  ).toBe('{"name":"a\\n\\n;b"}\n')
})
