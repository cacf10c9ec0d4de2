import { existsSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { countAttempts } from '../../support/count-attempts.ts'
import { listen } from '../../support/listen.ts'
import { forFile } from '../../support/opened.ts'
import { startClickhouse } from '../../support/servers/clickhouse.ts'

countAttempts(
  'SQL and web pages against the local ClickHouse',
  'no file, address or server is reached; pages are refused',
)

/** Counts connections: nothing that a statement names may be asked over the network. */
const asked = { count: 0, port: 0 }
const listener = createServer((socket) => {
  asked.count++
  socket.destroy()
})
const clickhouse = await forFile(startClickhouse())
const secret = join(clickhouse.server.dir, 'secret.txt')
writeFileSync(secret, 'a secret of this machine\n')
asked.port = await listen(listener)
await clickhouse.ask('CREATE DATABASE attack')
await clickhouse.ask('CREATE TABLE attack.t (a UInt8, b String) ENGINE = MergeTree ORDER BY a')
afterAll(() => void listener.close())

/** `fetch` sets Host itself, so this one goes out by hand. */
function status(headers: Record<string, string>): Promise<number> {
  const { port } = new URL(clickhouse.url)
  const all = { ...clickhouse.credentials, ...headers }
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: '127.0.0.1', method: 'POST', path: '/', headers: all }, (answer) => {
      answer.resume()
      resolve(answer.statusCode ?? 0)
    })
    sent.once('error', reject)
    sent.end('SELECT 1')
  })
}

describe('a web page', () => {
  it.each([
    [{ origin: 'http://evil.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ 'sec-fetch-site': 'none' }, 200],
    [{ host: 'evil.example:18123' }, 403],
    [{ host: '127.0.0.1.evil.example' }, 403],
    [{ host: 'localhost:1' }, 200],
    [{ host: '[::1]:1' }, 200],
  ])('that shows itself by %j is answered %i, even with the password', async (headers, answer) => {
    expect(await status(headers)).toBe(answer)
  })
})

it('keeps its password from other users, in a file of its own and not in the command line', async () => {
  const { password } = new URL(clickhouse.server.address)
  const file = join(clickhouse.server.dir, 'data', 'password')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(password.length).toBeGreaterThanOrEqual(32)
  const without = await fetch(clickhouse.url, { method: 'POST', body: 'SELECT 1' })
  expect([without.status, await without.text()]).toEqual([403, expect.stringContaining('Code: 516')])
})

/** SECRET is the file, OUT a file that is not there, HOST an address that counts who comes. */
const statements = [
  // Files as table functions, databases, engines, names.
  "SELECT * FROM file('SECRET', 'LineAsString')",
  'SELECT * FROM `SECRET`',
  "SELECT * FROM fileCluster('default', 'SECRET', 'LineAsString')",
  "SELECT * FROM filesystem('/')",
  "SELECT * FROM sqlite('SECRET', 't')",
  "SELECT * FROM sqlite('OUT', 't')",
  "EXPLAIN SELECT * FROM sqLite/**/('OUT', 't')",
  "INSERT INTO FUNCTION sqlite('OUT', 't') SELECT 1",
  "SELECT * FROM icebergLocal('SECRET')",
  "SELECT * FROM executable('id', 'TSV', 'x String')",
  "CREATE DATABASE f ENGINE = Filesystem('/')",
  "CREATE DATABASE f ENGINE = SQLite('OUT')",
  "CREATE DATABASE f ENGINE = Backup('d', File('OUT'))",
  "CREATE TABLE attack.x (a String) ENGINE = File(CSV, 'OUT')",
  "ATTACH TABLE attack.x (a String) ENGINE = File(CSV, 'SECRET')",
  "CREATE TABLE attack.x (a String) ENGINE = FileLog('password', 'LineAsString')",
  "CREATE TABLE attack.x (a String) ENGINE = SQLite('OUT', 't')",
  "ATTACH TABLE attack.x FROM 'OUT' (a UInt8) ENGINE = MergeTree ORDER BY a",
  "CREATE TABLE attack.x (a String, b String) ENGINE = EmbeddedRocksDB(0, 'OUT') PRIMARY KEY a",
  'CREATE TABLE attack.x (query String) ENGINE = QueryRunner',
  "CREATE TABLE attack.x (a String) ENGINE = Executable('id', 'TSV')",
  "CREATE TABLE attack.x (a UInt8) ENGINE = MergeTree ORDER BY a SETTINGS disk = disk(type = local, path = 'OUT')",
  "CREATE TEMPORARY TABLE x (a String) ENGINE = File(CSV, 'SECRET')",
  "CREATE DICTIONARY attack.d (a UInt64) PRIMARY KEY a SOURCE(FILE(path 'SECRET' format 'CSV')) LAYOUT(FLAT()) LIFETIME(0)",
  "CREATE MATERIALIZED VIEW attack.v ENGINE = File(CSV, 'OUT') AS SELECT * FROM attack.t",
  "CREATE VIEW attack.v SQL SECURITY NONE AS SELECT * FROM file('SECRET', 'LineAsString')",
  // The scalar function, in every spelling of its name.
  "SELECT file('SECRET')",
  "SELECT `file`('SECRET')",
  'SELECT "fi\\x6ce"(\'SECRET\')',
  'SELECT "fi\\Nle"(\'SECRET\')',
  "SELECT * APPLY(file) FROM (SELECT 'SECRET')",
  "SELECT 1 // '\n, file('SECRET') --'",
  "SELECT * FROM format(JSONEachRow, concat('a String, b String DEFAULT fi', 'le(\\'SECRET\\')'), '{\"a\":\"x\"}')",
  "SELECT * FROM format -- (\n (JSONEachRow, concat('a String, b String DEFAULT fi', 'le(\\'SECRET\\')'), '{\"a\":\"x\"}')",
  "SELECT b FROM generateRandom(concat('a UInt8, b String ALIAS fi', 'le(\\'SECRET\\')')) LIMIT 1",
  "SELECT * FROM eval(concat('SELECT fi', 'le(\\'SECRET\\')')) SETTINGS allow_experimental_eval_table_function = 1",
  "SELECT 'x' AS x SETTINGS additional_result_filter = concat('x')",
  "SELECT * FROM attack.t SETTINGS additional_table_filters = {'attack.t': 'file(\\'SECRET\\') = 1'}",
  "INSERT INTO attack.t VALUES (1, file('SECRET'))",
  "INSERT INTO attack.t SELECT * FROM input(concat('a UInt8, b String DEFAULT fi', 'le(\\'SECRET\\')')) FORMAT CSV\n1",
  // What clients and formats read and write.
  "SELECT 1 INTO OUTFILE 'OUT'",
  "SELECT \u2018(\u2019 INTO OUTFILE 'OUT'",
  "INSERT INTO attack.t FROM INFILE 'SECRET' FORMAT CSV",
  "WITH 1 AS x INSERT INTO attack.t FROM INFILE 'SECRET' FORMAT CSV",
  "SELECT 1 AS x FORMAT Template SETTINGS format_template_row = 'SECRET'",
  "SELECT 1 AS x FORMAT Protobuf SETTINGS format_schema = 'SECRET:X'",
  "SELECT 1 AS x FORMAT Protobuf SETTINGS output_format_schema = 'OUT'",
  "SET input_format_record_errors_file_path = 'OUT'",
  "INSERT INTO FUNCTION file('OUT', 'LineAsString', 'l String') SELECT 'x'",
  "BACKUP TABLE attack.t TO File('OUT')",
  "BACKUP TABLE attack.t TO Disk('default', 'b')",
  // Other servers.
  "SELECT * FROM url('http://HOST/', 'CSV', 'a String')",
  "INSERT INTO FUNCTION url('http://HOST/', 'CSV', 'a String') SELECT 'x'",
  "SELECT * FROM s3('http://HOST/bucket/x', 'CSV', 'a String')",
  "SELECT * FROM remote('HOST', 'system', 'one')",
  "SELECT * FROM mysql('HOST', 'd', 't', 'u', 'p')",
  "SELECT * FROM redis('HOST', 'key', 'key String, v String')",
  "CREATE TABLE attack.x (a String) ENGINE = URL('http://HOST/', CSV)",
  "CREATE TABLE attack.x (a String) ENGINE = Kafka('HOST', 't', 'g', 'CSV')",
  "CREATE TABLE attack.x (a UInt8) ENGINE = MergeTree ORDER BY a SETTINGS disk = disk(type = web, endpoint = 'http://HOST/')",
  "CREATE DATABASE f ENGINE = PostgreSQL('HOST', 'd', 'u', 'p')",
  "CREATE DATABASE f ENGINE = Backup('d', S3('http://HOST/bucket/x', 'a', 'b'))",
  "CREATE DATABASE f ENGINE = DataLakeCatalog('http://HOST/') SETTINGS catalog_type = 'rest', warehouse = 'w'",
  "RESTORE TABLE attack.x FROM S3('http://HOST/bucket/x', 'a', 'b')",
  "SELECT 1 AS x FORMAT AvroConfluent SETTINGS format_avro_schema_registry_url = 'http://HOST'",
  // Rights themselves.
  'CREATE USER u',
  'GRANT ALL ON *.* TO default',
  'CREATE FUNCTION f AS x -> x',
  "CREATE NAMED COLLECTION n AS url = 'http://HOST/'",
  'SYSTEM SHUTDOWN',
]

describe('the holder of the password', () => {
  it.each(statements)('reaches nothing beyond the database by: %s', async (statement) => {
    const out = join(clickhouse.server.dir, 'out')
    const filled = (text: string) =>
      text.replaceAll('SECRET', secret).replaceAll('OUT', (all, at: number) => (text[at - 1] === "'" ? out : all))
    const sql = filled(statement.replaceAll('HOST', `127.0.0.1:${asked.port}`))
    const answer = await clickhouse.post({}, sql)
    expect([answer.ok, await answer.text()]).toEqual([false, expect.not.stringContaining('a secret of')])
    expect([existsSync(out), asked.count, await clickhouse.ask('SELECT count() FROM attack.t')]).toEqual([
      false,
      0,
      '0',
    ])
  })

  it('refuses the same in settings of the URL, and never runs the values of parameters', async () => {
    const filter = { param_m: `{'attack.t': '1 = file(\\'${secret}\\')'}` }
    const byParameter = 'SELECT * FROM attack.t SETTINGS additional_table_filters = {m:Map(String, String)}'
    expect((await clickhouse.post(filter, byParameter)).ok).toBe(false)
    for (const [name, value] of [
      ['additional_result_filter', `file('${secret}') = ''`],
      ['format_template_row', secret],
      ['input_format_values_interpret_expressions', '1'],
    ] as const) {
      expect((await clickhouse.post({ [name]: value }, 'SELECT 1')).ok).toBe(false)
    }
    expect(await clickhouse.ask('SELECT {x:String}', { param_x: "file('x') INTO OUTFILE" })).toBe(
      "file(\\'x\\') INTO OUTFILE",
    )
  })
})
