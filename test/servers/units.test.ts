import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { UnitRow } from '@weir/api/usage.ts'
import { findRollups, quoted } from '@weir/clickhouse/audit/rollups.ts'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { repairRollup } from '@weir/clickhouse/repair/repair-rollup.ts'
import { RepairSession } from '@weir/clickhouse/repair/repair-session.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { startConsoleStack } from '../support/console-stack.ts'
import { linesOf, randomUnits, unitsFromMs } from '../support/usage/random-units.ts'

const policy = {
  version: 1,
  plans: { free: { limits: ['minute'] } },
  limits: { minute: { algorithm: 'fixed_window', size: 100, window: '1m' } },
  subjects: { acme: { plan: 'free', selfService: true, keys: [{ id: 'a', sha256: sha256('acme-key') }] } },
}
const { tables, desk, close } = await startConsoleStack({ policy })
afterAll(close)

const records = randomUnits(400, 7)
const block = { table: 'decisions', dedupToken: randomUUID(), lines: linesOf(records, randomUUID()) }
await insertBlock(tables.client, block)
await insertBlock(tables.client, block)

const span = { fromMs: unitsFromMs, toMs: unitsFromMs + 6 * 900_000 }
const iso = (ms: number) => new Date(ms).toISOString()
const token = `Bearer ${desk.environment.WEIR_ADMIN_TOKEN}`

interface Question {
  readonly units: readonly string[]
  readonly by: readonly string[]
  readonly step: string
  readonly zone: string
  readonly filters: Readonly<Record<string, readonly string[]>>
}

/** Columns of a question, as SQL over a record `d` with one of its units as `u`. */
const columns: Readonly<Record<string, string>> = {
  subject: 'd.subject',
  key_id: 'd.key_id',
  plan: 'd.plan',
  route: 'd.route',
  unit: 'u.1',
  basis: 'd.basis',
  meter: 'd.meter',
  model: "d.dims['model']",
  'dimension.tag': "d.dims['tag']",
  'dimension.tag-b': "d.dims['tag-b']",
}
const values: Readonly<Record<string, readonly string[]>> = {
  subject: ['acme', "o'neil", '=1+1"\r\n,', 'none'],
  basis: ['reported', 'bound'],
  meter: ['', 'chat'],
  plan: ['free'],
  model: ['small', 'large=2'],
  'dimension.tag': ['', 'größe'],
  'dimension.tag-b': ['\\', 'model=small'],
  'dimension.no.ne': ['', 'x'],
}
const starts: Readonly<Record<string, string>> = {
  quarter_hour: 'toStartOfFifteenMinutes',
  hour: 'toStartOfHour',
  day: 'toStartOfDay',
}

const question: fc.Arbitrary<Question> = fc.record({
  units: fc.subarray(['tokens', 'output_tokens', 'usd', 'nothing'], { minLength: 1 }),
  by: fc.subarray(Object.keys(columns), { maxLength: 4 }),
  step: fc.constantFrom(...Object.keys(starts), 'total'),
  zone: fc.constantFrom('UTC', 'Asia/Kathmandu'),
  filters: fc
    .subarray(Object.keys(values), { maxLength: 2 })
    .chain((names) =>
      fc
        .record(
          Object.fromEntries(
            names.map((name) => [
              name,
              fc.tuple(fc.constantFrom('', 'not_'), fc.subarray([...(values[name] ?? [])], { minLength: 1 })),
            ]),
          ),
        )
        .map((some) => Object.fromEntries(Object.entries(some).map(([name, [not, of]]) => [`${not}${name}`, of]))),
    ),
})

const pathOf = ({ units, by, step, zone, filters }: Question, more: Readonly<Record<string, string>> = {}) => {
  const lists = Object.entries({ ...filters, unit: units }).flatMap(([name, of]) =>
    of.map((one): [string, string] => [name, one]),
  )
  const plain = { from: iso(span.fromMs), to: iso(span.toMs), by: by.join(), step, time_zone: zone, ...more }
  return `/v1/usage?${new URLSearchParams([...lists, ...Object.entries(plain)])}`
}

/** The answer by the raw records alone. A test asks with a customer's key for the rows of that customer. */
async function fromRecords({ units, by, step, zone, filters }: Question, isOwn: boolean, { fromMs, toMs } = span) {
  const start = starts[step]
  const named = [
    ...(start === undefined ? [] : [`toUnixTimestamp(${start}(toTimeZone(d.ts, '${zone}')))`]),
    ...by.map((name) => columns[name] ?? ''),
  ]
  const conditions = Object.entries(filters).map(([name, of]) => {
    const [, not = '', column = ''] = /^(not_)?(.*)$/.exec(name) ?? []
    return `${columns[column] ?? "''"} ${not === '' ? 'IN' : 'NOT IN'} (${of.map(quoted).join(', ')})`
  })
  const where = [
    `d.outcome = 'allow' AND u.1 IN (${units.map(quoted).join(', ')})`,
    `d.ts >= fromUnixTimestamp64Milli(${fromMs}) AND d.ts < fromUnixTimestamp64Milli(${toMs})`,
    ...(isOwn ? ["d.subject = 'acme'"] : []),
    ...conditions,
  ]
  const rows = await tables.rows<{ key: readonly string[]; quantity: string; count: string }>(
    `SELECT [${named.map((one) => `toString(${one})`).join(', ')}]::Array(String) AS key,
       toString(sum(toInt128(u.2))) AS quantity, toString(count()) AS count
     FROM (SELECT *, arrayJoin(CAST(units, 'Array(Tuple(String, Int64))')) AS u FROM weir.decisions) AS d
     WHERE ${where.join(' AND ')} GROUP BY key`,
  )
  return rows.map(({ key, quantity, count }) => JSON.stringify([...key, quantity, count])).toSorted()
}

type Row = UnitRow & Readonly<Record<string, unknown>>
const flat = (row: Row, { by, step }: Pick<Question, 'by' | 'step'>) =>
  JSON.stringify([
    ...(step === 'total' ? [] : [String(Date.parse(row.ts ?? '') / 1_000)]),
    ...by.map((name) => row[name]),
    String(row.quantity),
    String(row.count),
  ])

interface Page {
  readonly rows: readonly Row[]
  readonly totals?: { readonly quantity: string; readonly count: string }
  readonly source: string
}
async function asked(path: string, key?: string) {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
  return await desk.ask<Page & { readonly detail: string }>(`GET ${path}`, undefined, headers)
}
const streamed = async (path: string) =>
  (await fetch(`${desk.environment.WEIR_CONSOLE_URL}${path}`, { headers: { authorization: token } })).text()

const total = (rows: readonly Row[], name: 'quantity' | 'count') =>
  String(rows.reduce((sum, row) => sum + BigInt(String(row[name])), 0n))

async function expectAsRecords(one: Question, isOwn: boolean) {
  const { status, body } = await asked(pathOf(one, { numbers: 'text', limit: '10000' }), isOwn ? 'acme-key' : undefined)
  const foreign = isOwn && one.filters.subject?.some((subject) => subject !== 'acme')
  expect(status).toBe(foreign ? 403 : 200)
  if (foreign) return
  const wanted = (await fromRecords(one, isOwn)).filter((row) => !row.endsWith('"0","0"]'))
  // A question without groups has one row, also of nothing.
  const found = body.rows.map((row) => flat(row, one)).filter((row) => !row.endsWith('"0","0"]'))
  expect(found.toSorted()).toEqual(wanted)
  expect(body.source).toBe('units_15m')
  const sums = { quantity: total(body.rows, 'quantity'), count: total(body.rows, 'count') }
  expect(body.totals).toEqual(one.units.length === 1 ? sums : undefined)
  if (isOwn) return
  const lines = (await streamed(pathOf(one, { numbers: 'text', format: 'jsonl' }))).trimEnd().split('\n')
  expect(lines.slice(0, -1).map((line) => JSON.parse(line))).toEqual(body.rows)
}

test('60 random questions are answered as the raw records say, for a customer of its own rows alone', {
  timeout: 300_000,
}, async () => {
  await fc.assert(fc.asyncProperty(question, fc.boolean(), expectAsRecords), { numRuns: 60 })
})

const everything = {
  units: ['tokens', 'usd'],
  by: ['subject', 'unit', 'model', 'dimension.tag-b'],
  step: 'quarter_hour',
  zone: 'UTC',
  filters: {},
}

test('A rollup that lost rows and has others twice answers as the raw records say once it is repaired', async () => {
  const before = await asked(pathOf(everything))
  for (const query of [
    "DELETE FROM weir.units_15m WHERE subject = 'acme' SETTINGS lightweight_deletes_sync = 2",
    'INSERT INTO weir.units_15m SELECT * FROM weir.units_15m WHERE notEmpty(dims) SETTINGS insert_deduplicate = 0',
  ])
    await tables.client.command({ query })
  expect((await asked(pathOf(everything))).body.rows).not.toEqual(before.body.rows)
  for (const rollup of await findRollups(tables.client)) {
    if (rollup.table === 'units_15m') await repairRollup(new RepairSession(tables.client, randomUUID()), rollup, span)
  }
  expect(before.body.rows.length).toBeGreaterThan(50)
  await expectAsRecords(everything, false)
})

test('The largest models and the row of all others add up to the totals', async () => {
  const one = { ...everything, units: ['tokens'], by: ['model'], step: 'total' }
  const all = await asked(pathOf(one, { order: '-quantity' }))
  const top = await asked(pathOf(one, { top: '2' }))
  expect(all.body.rows.length).toBeGreaterThan(3)
  expect(top.body.rows.slice(0, 2)).toEqual(all.body.rows.slice(0, 2))
  expect(top.body.rows[2]).toMatchObject({ other: true, groups: all.body.rows.length - 2 })
  expect(total(top.body.rows, 'quantity')).toBe(String(top.body.totals?.quantity))
  expect(top.body.totals).toEqual(all.body.totals)
})

test('A span is compared with the one before, and pages go on where the last one ended', async () => {
  const middle = unitsFromMs + 3 * 900_000
  const one = { ...everything, units: ['usd'], by: ['dimension.tag'], step: 'total' }
  const half = (fromMs: number, toMs: number) => pathOf(one, { from: iso(fromMs), to: iso(toMs) })
  const [earlier, later] = [await asked(half(span.fromMs, middle)), await asked(half(middle, span.toMs))]
  const { body } = await asked(`${half(middle, span.toMs)}&compare=previous&order=-change`)
  const quantityOf = ({ rows }: Page, tag: unknown) => rows.find((row) => row['dimension.tag'] === tag)?.quantity
  expect(body.rows.map((row) => [row.quantity, row.previous?.quantity])).toEqual(
    body.rows.map((row) => [
      quantityOf(later.body, row['dimension.tag']),
      quantityOf(earlier.body, row['dimension.tag']),
    ]),
  )
  const changes = body.rows.map(({ change }) => Number(change))
  expect(changes).toEqual(changes.toSorted((a, b) => b - a))
  const found: Row[] = []
  for (let after: string | null | undefined; after !== null; ) {
    const more = { limit: '7', ...(after === undefined ? {} : { after }) }
    const page = await asked(pathOf(everything, more))
    found.push(...page.body.rows)
    after = (page.body as unknown as { readonly next: string | null }).next
  }
  expect(found).toEqual((await asked(pathOf(everything))).body.rows)
})

/** The values of a column, with how many records each is in, once for each of their units. */
const valuesOf = (sql: string) =>
  tables.rows<{ value: string; count: string }>(
    `SELECT ${sql} AS value, toString(count()) AS count
     FROM (SELECT *, arrayJoin(mapKeys(units)) AS unit FROM weir.decisions WHERE outcome = 'allow') AS d
     GROUP BY value ORDER BY count() DESC, value`,
  )

test.each([
  ['unit', 'd.unit'],
  ['basis', 'd.basis'],
  ['meter', 'd.meter'],
  ['model', "d.dims['model']"],
  ['dimension.tag-b', "d.dims['tag-b']"],
  ['dimension', 'arrayJoin(mapKeys(d.dims))'],
])('The values of the column %s are listed, the most frequent first, and those that begin so', async (name, sql) => {
  const wanted = (await valuesOf(sql)).map(({ value, count }) => ({ value, count: Number(count) }))
  const ask = async (more = '') => {
    const path = `/v1/dimensions/${name}?from=${iso(span.fromMs)}&to=${iso(span.toMs)}${more}`
    const { status, body } = await desk.ask<{ items: readonly { value: string }[]; source: string }>(`GET ${path}`)
    expect([status, body.source]).toEqual([200, 'units_15m'])
    return body.items
  }
  expect(wanted.length).toBeGreaterThan(1)
  expect(await ask()).toEqual(wanted)
  const prefix = wanted.map(({ value }) => value.slice(0, 3)).find((one) => one !== '') ?? ''
  expect(await ask(`&prefix=${encodeURIComponent(prefix)}`)).toEqual(
    wanted.filter(({ value }) => value.startsWith(prefix)),
  )
  const own = await asked(`/v1/dimensions/${name}?from=${iso(span.fromMs)}&to=${iso(span.toMs)}`, 'acme-key')
  const counts = (items: unknown) => (items as { count: number }[]).reduce((sum, one) => sum + one.count, 0)
  expect(counts((own.body as unknown as { items: unknown }).items)).toBeLessThan(counts(wanted))
})

test('CSV has a column of each label, guarded as any text, and Parquet has the numbers', async () => {
  const one = { ...everything, units: ['tokens'], by: ['subject', 'dimension.tag-b'], step: 'total' }
  const csv = await streamed(pathOf(one, { format: 'csv' }))
  expect(csv).toMatch(/^"subject","dimension\.tag-b","quantity","count"\r\n/)
  expect(csv).toContain(`"'=1+1""\r\n,"`)
  const answer = await fetch(`${desk.environment.WEIR_CONSOLE_URL}${pathOf(one, { format: 'parquet' })}`, {
    headers: { authorization: token },
  })
  // The file's one column of quantities does not say of which unit they are.
  expect(answer.headers.get('content-disposition')).toContain('filename="usage-tokens-by-subject-dimension.tag-b-2027-')
  const bytes = await answer.arrayBuffer()
  await tables.client.command({
    query:
      'CREATE TABLE read_units (subject String, `dimension.tag-b` String, quantity Decimal(38, 0), count Int64) ENGINE = Memory',
  })
  await tables.client.insert({
    table: 'read_units',
    values: Readable.from([Buffer.from(bytes)], { objectMode: false }),
    format: 'Parquet',
  })
  const read = await tables.rows<{ subject: string; tag: string; quantity: string; count: string }>(
    'SELECT subject, `dimension.tag-b` AS tag, toString(quantity) AS quantity, toString(count) AS count FROM read_units',
  )
  expect(
    read.map(({ subject, tag, quantity, count }) => JSON.stringify([subject, tag, quantity, count])).toSorted(),
  ).toEqual(await fromRecords(one, false))
})

test('With fill=zero every group has a row of each step', async () => {
  const one = { ...everything, units: ['usd'], by: ['dimension.tag-b'] }
  const groups = new Set((await asked(pathOf(one))).body.rows.map((row) => row['dimension.tag-b']))
  const { status, body } = await asked(pathOf(one, { fill: 'zero' }))
  expect([status, body.rows.length]).toEqual([200, groups.size * 6])
})
