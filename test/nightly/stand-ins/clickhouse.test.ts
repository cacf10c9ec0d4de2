import { afterAll, describe, expect, it } from 'vitest'
import { randomTable, startClickhouse } from '../../support/servers/clickhouse.ts'

const clickhouse = await startClickhouse()
afterAll(() => clickhouse.close())

const get = (path: string, init: RequestInit = {}) =>
  fetch(`${clickhouse.url}${path}`, { headers: clickhouse.credentials, ...init })

describe('health', () => {
  it('answers /ping as a server does, also to HEAD', async () => {
    expect(await (await get('/ping')).text()).toBe('Ok.\n')
    expect((await get('/ping', { method: 'HEAD' })).status).toBe(200)
    expect(await (await get('/replicas_status')).text()).toBe('Ok.\n')
    expect(await (await get('/')).text()).toBe('Ok.\n')
    expect((await get('/play')).status).toBe(404)
  })
})

describe('statements', () => {
  it('reads the statement from the URL, from the body, and from both joined', async () => {
    expect(await (await get('/?query=SELECT%201')).text()).toBe('1\n')
    expect(await clickhouse.ask('SELECT 2')).toBe('2')
    expect(await (await clickhouse.post({ query: 'SELECT 3' }, '+ 4')).text()).toBe('7\n')
  })

  it('formats by FORMAT, else by default_format, else by the header, else tab separated', async () => {
    const formats = async (parameters: Record<string, string>, sql: string, headers = {}) =>
      (await clickhouse.post(parameters, sql, headers)).headers.get('x-clickhouse-format')
    expect(await formats({ default_format: 'CSV' }, 'SELECT 1 FORMAT JSON')).toBe('JSON')
    expect(await formats({ default_format: 'CSV' }, 'SELECT 1')).toBe('CSV')
    expect(await formats({}, 'SELECT 1', { 'x-clickhouse-format': 'JSONEachRow' })).toBe('JSONEachRow')
    expect(await formats({}, 'SELECT 1')).toBe('TabSeparated')
  })

  it('binds typed parameters, which never become part of the statement', async () => {
    const result = await clickhouse.client.query({
      query: 'SELECT {n:Int32} + 1 AS n, {s:String} AS s, {a:Array(String)} AS a, {x:Nullable(String)} AS x',
      query_params: { n: 4, s: "it's\t\\ 1; DROP", a: ["o'ne", 'two'], x: null },
      format: 'JSONEachRow',
    })
    expect(await result.json()).toEqual([{ n: 5, s: "it's\t\\ 1; DROP", a: ["o'ne", 'two'], x: null }])
    await expect(clickhouse.ask('SELECT {n:Int32}')).rejects.toThrow('Code: 456')
  })

  it('says id, format, time zone, host and summary in the headers', async () => {
    const answer = await clickhouse.post({ query_id: 'my-id' }, 'SELECT number FROM numbers(3)')
    expect(answer.headers.get('x-clickhouse-query-id')).toBe('my-id')
    expect(answer.headers.get('x-clickhouse-timezone')).toMatch(/\w/)
    expect(answer.headers.get('x-clickhouse-server-display-name')).toMatch(/\w/)
    expect(answer.headers.get('content-type')).toBe('text/tab-separated-values; charset=UTF-8')
    expect(JSON.parse(answer.headers.get('x-clickhouse-summary') ?? '')).toMatchObject({
      result_rows: '3',
      result_bytes: '6',
    })
  })

  it('streams a large result, equal to the last byte', async () => {
    const answer = await clickhouse.post({}, 'SELECT number FROM numbers(1000000) FORMAT JSONEachRow')
    expect(answer.headers.get('content-length')).toBeNull()
    const lines = (await answer.text()).trimEnd().split('\n')
    expect(lines).toHaveLength(1_000_000)
    expect(lines.at(-1)).toBe('{"number":999999}')
  })

  it('streams results beyond what it holds in memory to their end, and refuses them whole', async () => {
    const rows = (format: string) =>
      `SELECT repeat(toString(number % 10), 999) AS text FROM numbers(600000) FORMAT ${format}`
    let bytes = 0
    for await (const chunk of (await clickhouse.post({}, rows('TSV'))).body ?? []) bytes += chunk.length
    expect(bytes).toBe(600_000_000)
    expect((await clickhouse.post({}, rows('JSON'))).headers.get('x-clickhouse-exception-code')).toBe('396')
  })

  it('keeps formats with head and foot in one piece', async () => {
    const answer = await clickhouse.post({}, 'SELECT number FROM numbers(300000) FORMAT JSON')
    expect(await answer.json()).toMatchObject({ rows: 300_000 })
    const totals = await clickhouse.ask(
      'SELECT number % 2 AS k, count() FROM numbers(10) GROUP BY k WITH TOTALS ORDER BY k',
    )
    expect(totals).toBe('0\t5\n1\t5\n\n0\t10')
  })
})

describe('refusals', () => {
  it.each([
    ['SELECT 1 +', 400, '62', 'SYNTAX_ERROR'],
    ['SELECT * FROM no_such_table', 404, '60', 'UNKNOWN_TABLE'],
    ['SELECT 1; SELECT 2', 400, '62', 'Multi-statements are not allowed'],
    ["SELECT 1 INTO OUTFILE '/tmp/x'", 500, '358', 'INTO_OUTFILE_NOT_ALLOWED'],
    ["INSERT INTO t FROM INFILE '/etc/passwd' FORMAT CSV", 501, '48', 'NOT_IMPLEMENTED'],
    ['SELECT throwIf(1)', 500, '395', 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO'],
    ['SELECT 1 FORMAT Nope', 404, '73', 'UNKNOWN_FORMAT'],
    ['', 400, '62', 'Empty query'],
  ])('%s → %i, code %s', async (sql, status, code, name) => {
    const answer = await clickhouse.post({}, sql)
    const text = await answer.text()
    expect(answer.status).toBe(status)
    expect(answer.headers.get('x-clickhouse-exception-code')).toBe(code)
    expect(text).toContain(name)
    expect(text).toMatch(
      new RegExp(`^Code: ${code}\\. DB::Exception: .*\\(\\w+\\) \\(version [\\d.]+ \\(official build\\)\\)\\n$`, 's'),
    )
  })

  it('gives @clickhouse/client its error with code and type', async () => {
    await expect(clickhouse.client.query({ query: 'SELECT * FROM no_such' })).rejects.toMatchObject({
      code: '60',
      type: 'UNKNOWN_TABLE',
    })
  })

  it('reports a failure in the middle of a result so that the client sees it', async () => {
    const result = await clickhouse.client.query({
      query: 'SELECT throwIf(number = 3000000) AS x, number FROM numbers(5000000)',
      format: 'JSONEachRow',
    })
    await expect(result.text()).rejects.toThrow()
    const again = await clickhouse.client.query({
      query: 'SELECT throwIf(number = 3000000) AS x, number FROM numbers(5000000)',
      format: 'JSONEachRow',
    })
    const drain = async () => {
      for await (const rows of again.stream()) void rows
    }
    await expect(drain()).rejects.toThrow(/non-zero/)
  })

  it('lets GET only read', async () => {
    const answer = await get(`/?query=${encodeURIComponent('CREATE TABLE x (a Int8) ENGINE = Memory')}`)
    expect([answer.status, answer.headers.get('x-clickhouse-exception-code')]).toEqual([500, '164'])
  })

  it('knows one user, named in a header, by Basic or in the URL', async () => {
    const ask = (parameters: Record<string, string>, headers: Record<string, string>) =>
      fetch(`${clickhouse.url}/?${new URLSearchParams(parameters)}`, { method: 'POST', body: 'SELECT 1', headers })
    const statuses = async (...asked: Parameters<typeof ask>) => (await ask(...asked)).status
    const { password } = new URL(clickhouse.server.address)
    const basic = (user: string) => ({ authorization: `Basic ${Buffer.from(user).toString('base64')}` })
    expect(await statuses({ user: 'default', password }, {})).toBe(200)
    expect(await statuses({}, { 'x-clickhouse-user': 'default', 'x-clickhouse-key': password })).toBe(200)
    expect(await statuses({}, basic(`default:${password}`))).toBe(200)
    expect(await statuses({}, {})).toBe(403)
    expect(await statuses({}, basic('default:'))).toBe(403)
    expect(await statuses({}, basic('default:wrong'))).toBe(403)
    expect(await statuses({ user: 'bob' }, {})).toBe(403)
    expect(await (await ask({ user: 'bob' }, {})).text()).toContain('Code: 516')
  })

  it('refuses by name what it cannot do', async () => {
    const code = async (parameters: Record<string, string>, headers = {}) =>
      (await clickhouse.post(parameters, 'SELECT 1', headers)).headers.get('x-clickhouse-exception-code')
    expect(await code({ compress: '1' })).toBe('48')
    expect(await code({ decompress: '1' })).toBe('48')
    expect(await code({ role: 'admin' })).toBe('512')
    expect(await code({}, { 'content-encoding': 'compress' })).toBe('48')
    expect(await code({}, { 'content-type': 'multipart/form-data; boundary=x' })).toBe('48')
    expect(await code({ query: "INSERT INTO t SELECT a FROM input('a Int8') FORMAT CSV" })).toBe('48')
  })
})

describe('storage', () => {
  it('keeps databases, tables, views and rows through kill -9', async () => {
    const table = randomTable()
    await clickhouse.ask(`CREATE DATABASE d_${table}`)
    await clickhouse.ask(
      `CREATE TABLE ${table} (a Int32, CONSTRAINT positive CHECK a > 0) ENGINE = MergeTree ORDER BY a`,
      { database: `d_${table}` },
    )
    await clickhouse.ask(
      `CREATE MATERIALIZED VIEW v_${table} ENGINE = SummingMergeTree ORDER BY k AS SELECT a % 2 AS k, count() AS n FROM ${table} GROUP BY k`,
      { database: `d_${table}` },
    )
    await clickhouse.ask(`INSERT INTO d_${table}.${table} VALUES (1), (2), (3)`)
    await expect(clickhouse.ask(`INSERT INTO d_${table}.${table} VALUES (0)`)).rejects.toThrow('VIOLATED_CONSTRAINT')
    await clickhouse.server.kill('SIGKILL')
    await clickhouse.server.restart()
    expect(await clickhouse.ask(`SELECT count(), sum(a) FROM d_${table}.${table}`)).toBe('3\t6')
    expect(await clickhouse.ask(`SELECT k, sum(n) FROM d_${table}.v_${table} GROUP BY k ORDER BY k`)).toBe('0\t1\n1\t2')
    expect(
      await clickhouse.ask(`SELECT count() FROM system.tables WHERE database = 'd_${table}' AND name = '${table}'`),
    ).toBe('1')
  })
})
