import { describe, expect, it } from 'vitest'
import { killingByClientQueryId, withClientQueryIds } from './query-ids.ts'
import { readingFromFile, readStatement } from './statement.ts'

describe('readStatement', () => {
  it.each([
    ['SELECT 1', 'select', undefined],
    ['  -- c\n/* ; */ with 1 as x select x format JSON;', 'select', 'JSON'],
    ['(SELECT 1) FORMAT CSV', 'select', 'CSV'],
    ["SELECT 'FORMAT x; INTO OUTFILE'", 'select', undefined],
    ['SELECT $tag$ ; SELECT 2 $tag$', 'select', undefined],
    ['SELECT "a;b", `c;d` FROM t', 'select', undefined],
    ['SHOW TABLES', 'read', undefined],
    ['KILL QUERY WHERE 1 ASYNC', 'kill', undefined],
    ['SET a = 1', 'write', undefined],
    ['INSERT INTO t SELECT 1', 'insertSelect', undefined],
    ['INSERT INTO t (format, values) SETTINGS a = 1 SELECT 1, 2 FORMAT Null', 'insertSelect', undefined],
  ])('%s is a %s', (sql, kind, format) => {
    const statement = readStatement(sql)
    expect(statement.kind).toBe(kind)
    if (kind !== 'insertSelect') expect(statement).toMatchObject({ format })
  })

  it.each(['', '  ', ';', '-- nothing', '/* nothing */'])('finds nothing in %j', (sql) => {
    expect(readStatement(sql)).toEqual({ kind: 'empty' })
  })
})

describe('an INSERT with data', () => {
  const split = (sql: string) => {
    const statement = readStatement(sql)
    if (statement.kind !== 'insertData') throw new Error(`read as ${statement.kind}`)
    const { data } = statement
    return {
      rewritten: readingFromFile(sql.slice(0, data.dataAt), data, '/f').replace(/ +/g, ' '),
      data: sql.slice(data.dataAt),
    }
  }

  it.each([
    ['INSERT INTO t FORMAT TSV\n\nx', "INSERT INTO t FROM INFILE '/f' COMPRESSION 'none' FORMAT TSV", '\nx'],
    ['INSERT INTO t FORMAT CSV;a;b', "INSERT INTO t FROM INFILE '/f' COMPRESSION 'none' FORMAT CSV", 'a;b'],
    [
      "insert into values values ('a;'); x",
      "insert into values FROM INFILE '/f' COMPRESSION 'none' FORMAT Values",
      " ('a;'); x",
    ],
    [
      'INSERT INTO d.t (`a`, b) SETTINGS x = 1 FORMAT Native \r\n\x01',
      "INSERT INTO d.t (`a`, b) FROM INFILE '/f' COMPRESSION 'none' SETTINGS x = 1 FORMAT Native",
      '\x01',
    ],
  ])('%j reads its rows from a file', (sql, rewritten, data) => {
    expect(split(sql)).toEqual({ rewritten, data })
  })
})

describe('query ids', () => {
  it('are the client’s in system.processes and in KILL QUERY, and nothing in strings is touched', () => {
    expect(withClientQueryIds('SELECT * FROM system.processes p')).toMatch(
      /^SELECT \* FROM \(SELECT \* REPLACE .*\) p$/,
    )
    expect(withClientQueryIds("SELECT 'system.processes'")).toBe("SELECT 'system.processes'")
    expect(killingByClientQueryId("KILL QUERY WHERE query_id = 'query_id'")).toMatch(/WHERE \(if\(.*\) = 'query_id'$/)
  })
})
