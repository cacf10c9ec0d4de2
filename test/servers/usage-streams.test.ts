import { readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { parseUsageQuery } from '@weir/api/query/usage-query.ts'
import { askUsage, usageSource } from '@weir/console/usage/usage-queries.ts'
import { openUsageStream } from '@weir/console/usage/usage-stream.ts'
import { Reach } from '@weir/core/usage/reach.ts'
import { afterAll, expect, test } from 'vitest'
import { startConsoleStack } from '../support/console-stack.ts'
import { listenForTest } from '../support/listen.ts'
import { folderForTest } from '../support/opened.ts'
import { runWeir } from '../support/weir-up.ts'

/** Far more bytes than the sockets between ClickHouse and a reader that waits can hold. */
const subjects = 400_000
const { tables, desk, close } = await startConsoleStack()
await tables.client.command({
  query: `INSERT INTO weir.usage_15m (ts, subject, route, method, outcome, count, cost)
    SELECT '2026-11-01 00:00:00', concat('subject-', leftPad(toString(number), 60, '0')), 'GET /', 'GET', 'allow', 1, 5
    FROM numbers(${subjects})`,
})
await tables.client.command({
  query: `INSERT INTO weir.usage_15m (ts, subject, route, method, outcome, count, cost) VALUES
    ('2026-11-02 00:00:00', '=1+1', 'GET /', 'GET', 'allow', 1, 5), ('2026-11-02 00:00:00', 'acme', 'GET /', 'GET', 'deny', 2, 5)`,
})
afterAll(close)

const large = '/v1/usage?from=2026-11-01&to=2026-11-02&by=subject&step=total'
const small = '/v1/usage?from=2026-11-02&to=2026-11-03&by=subject&step=total'
function open(path: string, accept = '*/*', method = 'GET') {
  const leaving = new AbortController()
  const headers = { authorization: `Bearer ${desk.environment.WEIR_ADMIN_TOKEN}`, accept }
  const response = fetch(`${desk.environment.WEIR_CONSOLE_URL}${path}`, { method, headers, signal: leaving.signal })
  return { response, leave: () => leaving.abort() }
}
/** Queries of streams that ClickHouse works on. */
const running = async () => {
  const query =
    "SELECT count() AS n FROM system.processes WHERE query LIKE '%usage_15m%FORMAT%' AND query NOT LIKE '%processes%'"
  return Number((await tables.rows<{ n: string }>(query))[0]?.n)
}
const csv = `"subject","count","allowed","denied","cost"\r\n"'=1+1",1,1,0,5\r\n"acme",2,0,2,0\r\n`

test.each([
  ['&format=csv', '*/*', 'text/csv; charset=utf-8; header=present', csv],
  ['', 'text/csv', 'text/csv; charset=utf-8; header=present', csv],
  ['&format=csv&csv=exact', '*/*', 'text/csv; charset=utf-8; header=present', csv.replace("'=", '=')],
  [
    '&format=jsonl',
    'text/csv',
    'application/x-ndjson; charset=utf-8',
    `{"subject":"=1+1","count":1,"allowed":1,"denied":0,"cost":5}\n{"subject":"acme","count":2,"allowed":0,"denied":2,"cost":0}\n{"end":true,"rows":2}\n`,
  ],
])('the usage of %s, for a reader that accepts %s, is %s', async (query, accept, type, text) => {
  const response = await open(`${small}${query}`, accept).response
  expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([200, type, text])
  expect([response.headers.get('weir-silent'), response.headers.get('vary')]).toEqual([
    '0',
    'Accept, Authorization, X-API-Key, Cookie',
  ])
})

test('the head of a stream says how far it is complete, and asks for no row', async () => {
  const name = "'01a20287-6fb6-7000-8000-000000000001'"
  await tables.client.command({
    query: `INSERT INTO weir.marks (topic, journal, partition, mark, seq, first_mark, end)
      SELECT 'weir.decisions.v1', ${name}, 0, toDateTime64('2026-11-03 00:00:00', 3), 1, toDateTime64('2026-11-03 00:00:00', 3), 0`,
  })
  await tables.client.command({
    query: `INSERT INTO weir.gaps (cause, topic, partition, count, from_ts, to_ts)
      SELECT 'expired', 'weir.decisions.v1', 3, 7, '2026-11-01 12:00:00', '2026-11-01 13:00:00'`,
  })
  const gapsOf = async (path: string) => {
    const page = (await (await open(path).response).json()) as { readonly gaps: readonly object[] }
    return page.gaps
  }
  // The quarter hour before its own, and none of it.
  expect(await gapsOf(small.replace('-03&', '-02T00:15:00Z&compare=previous&'))).toEqual([])
  expect(await gapsOf(small)).toEqual([])
  const times = { from: '2026-11-01T12:00:00.000Z', to: '2026-11-01T13:00:00.000Z' }
  expect(await gapsOf(`${small}&compare=previous`)).toEqual([{ cause: 'expired', partition: 3, count: 7, ...times }])
  const { status, headers } = await open(`${large}&format=parquet`, '*/*', 'HEAD').response
  expect(headers.get('weir-gaps')).toBe('1')
  expect([status, headers.get('content-type')]).toEqual([200, 'application/vnd.apache.parquet'])
  expect(headers.get('content-disposition')).toMatch(/^attachment; filename="usage-[\w.-]+\.parquet"$/)
  expect(headers.get('weir-complete-through')).toBe('2026-11-03T00:00:00.000Z')
})

test('a stream goes as fast as its reader, who ends its query by leaving', async () => {
  const { response, leave } = open(`${large}&format=jsonl`)
  expect((await response).status).toBe(200)
  await expect.poll(running, { timeout: 20_000 }).toBe(1)
  leave()
  await expect.poll(running, { timeout: 1_000, interval: 50 }).toBe(0)
})

test('two streams of a credential are open at once, and a third one when one of them ends', async () => {
  const first = open(`${large}&format=csv`)
  const second = open(`${large}&format=jsonl`)
  expect([(await first.response).status, (await second.response).status]).toEqual([200, 200])
  const third = await open(`${small}&format=csv`).response
  expect([third.status, third.headers.get('retry-after')]).toEqual([429, '5'])
  expect(await third.json()).toMatchObject({ type: 'urn:weir:problem:too-many-streams' })
  first.leave()
  const status = async () => (await open(`${small}&format=csv`).response).status
  await expect.poll(status, { timeout: 10_000 }).toBe(200)
  const lines = (await (await second.response).text()).trimEnd().split('\n')
  expect(lines.at(-1)).toBe(`{"end":true,"rows":${subjects}}`)
  expect(lines).toHaveLength(subjects + 1)
})

test('more rows or time than an answer may have are an error before the first one', async () => {
  const parsed = parseUsageQuery(
    { from: '2026-11-01', to: '2026-11-02', by: 'subject', step: 'total' },
    { nowMs: Date.now() },
  )
  if (parsed.kind === 'problems') throw new Error(parsed.problems.join())
  const { query } = parsed
  const form = { format: 'jsonl', sumsAreText: false, isCsvExact: false } as const
  const source = usageSource(Reach.everybody, query)
  const ask = (bounds: { rowsMax?: number; msMax?: number }) =>
    openUsageStream(tables.client, Reach.everybody, { source, query, form }, AbortSignal.timeout(60_000), bounds)
  await expect(ask({ rowsMax: subjects / 4 })).rejects.toMatchObject({ bound: 'too-large' })
  await expect(ask({ msMax: 1 })).rejects.toMatchObject({ bound: 'timed-out' })
  const page = { rowsMax: 3, msMax: 1 }
  await expect(askUsage(tables.client, Reach.everybody, query, page)).rejects.toMatchObject({ bound: 'timed-out' })
  expect((await textOf(await ask({ rowsMax: subjects }))).split('\n')).toHaveLength(subjects + 2)
})

const usage = ['usage', '--from', '2026-11-02', '--to', '2026-11-03', '--by', 'subject']

test('weir usage --format prints the same, or writes it to a file that appears once it is whole', async () => {
  const dir = await folderForTest('usage')
  const { environment } = desk
  const printed = await runWeir([...usage, '--format', 'csv'], environment)
  expect([printed.code, printed.stdout]).toEqual([0, csv])
  expect(printed.stderr).toContain('counted until 3 Nov 2026, 00:00:00 UTC')
  const exact = await runWeir([...usage, '--format', 'csv', '--exact'], environment)
  expect(exact.stdout).toBe(csv.replace("'=", '='))
  const output = join(dir, 'usage.parquet')
  await writeFile(output, 'of before')
  expect(await runWeir([...usage, '--format', 'parquet', '--output', output], environment)).toMatchObject({ code: 0 })
  const parquet = await open(`${small}&format=parquet`).response
  expect((await readFile(output)).equals(Buffer.from(await parquet.arrayBuffer()))).toBe(true)
  const wrong = await runWeir([...usage, '--step', 'year', '--format', 'csv', '--output', output], environment)
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('step must be one of')])
  const nowhere = await runWeir([...usage, '--format', 'csv', '--output', join(dir, 'none', 'a.csv')], environment)
  expect([nowhere.code, nowhere.stderr]).toEqual([2, expect.stringContaining('a.csv cannot be written')])
  expect(await readdir(dir)).toEqual(['usage.parquet'])
})

test('a file of before stays as it is where the answer breaks off', async () => {
  const dir = await folderForTest('usage')
  const output = join(dir, 'usage.csv')
  await writeFile(output, 'of before')
  const broken = createServer((socket) => {
    socket.once('data', () =>
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n"a"\r\n', () => socket.end()),
    )
  })
  const environment = { ...desk.environment, WEIR_CONSOLE_URL: `http://127.0.0.1:${await listenForTest(broken)}` }
  const { code, stderr } = await runWeir([...usage, '--format', 'csv', '--output', output], environment)
  expect([code, stderr]).toEqual([1, expect.stringContaining('CONSOLE_UNAVAILABLE')])
  expect([await readdir(dir), await readFile(output, 'utf8')]).toEqual([['usage.csv'], 'of before'])
})

test('a stream is cut off where ClickHouse is killed in its middle, and never taken for whole', async () => {
  for (const format of ['csv', 'jsonl']) {
    const response = await open(`${large}&format=${format}`).response
    expect(response.status).toBe(200)
    await expect.poll(running, { timeout: 20_000 }).toBe(1)
    await tables.kill()
    await expect(response.text()).rejects.toThrow('terminated')
    await tables.restart()
  }
  expect(await desk.readLog()).toContain('ClickHouse ended an answer in its middle: it gave no reason')
})
