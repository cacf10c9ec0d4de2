import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { UnitRow } from '@weir/api/usage.ts'
import { findRollups } from '@weir/clickhouse/audit/rollups.ts'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { repairRollup } from '@weir/clickhouse/repair/repair-rollup.ts'
import { RepairSession } from '@weir/clickhouse/repair/repair-session.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { startConsoleStack } from '../support/console-stack.ts'
import { createSeededRandom } from '../support/seeded-random.ts'
import { askCommand, readExactly } from '../support/usage/ask-command.ts'
import { lateSettlements, linesOf, randomUnits, unitsFromMs } from '../support/usage/random-units.ts'
import { readCsv } from '../support/usage/read-csv.ts'
import { parametersOf, type UnitQuestion, unitQuestion, unitsOfRecords } from '../support/usage/unit-questions.ts'
import { runWeir } from '../support/weir-up.ts'

const policy = {
  version: 1,
  plans: { free: { limits: ['minute'] }, team: { limits: [] } },
  limits: { minute: { algorithm: 'fixed_window', size: 100, window: '1m' } },
  subjects: {
    acme: { plan: 'free', selfService: true, keys: [{ id: 'a', sha256: sha256('acme-key') }] },
    red: { plan: 'team', parent: 'acme' },
  },
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

const pathOf = (one: UnitQuestion, more: Readonly<Record<string, string>> = {}) => {
  const pairs = Object.entries({ ...parametersOf(one, span), ...more }).flatMap(([name, of]) =>
    [of].flat().map((value): [string, string] => [name, value]),
  )
  return `/v1/usage?${new URLSearchParams(pairs)}`
}

type Row = UnitRow & Readonly<Record<string, unknown>>
const flat = (row: Row, { by, step }: Pick<UnitQuestion, 'by' | 'step'>) =>
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
const streamed = async (path: string, key = desk.environment.WEIR_ADMIN_TOKEN) => {
  const headers = { authorization: `Bearer ${key}` }
  return (await fetch(`${desk.environment.WEIR_CONSOLE_URL}${path}`, { headers })).text()
}

const total = (rows: readonly Row[], name: 'quantity' | 'count') =>
  String(rows.reduce((sum, row) => sum + BigInt(String(row[name])), 0n))

const compared = { questions: 0, rows: 0, byProcess: 0 }
/** Not a row of nothing. */
const isSomething = (row: string) => !row.endsWith('"0","0"]')

/** What a process of the command prints; undefined for a question that its options cannot ask. */
async function printed(one: UnitQuestion, environment: Readonly<Record<string, string>>, ...more: string[]) {
  const { by, ...given } = parametersOf(one, span)
  if (Object.keys(given).some((name) => name.startsWith('not_dimension'))) return undefined
  const args = Object.entries({ ...given, ...(by === '' ? {} : { by }) }).flatMap(([name, of = '']) =>
    [of].flat().map((value) => {
      const label = /^dimension\.(.*)$/.exec(name)?.[1]
      return label === undefined ? `--${name.replaceAll('_', '-')}=${value}` : `--dimension=${label}=${value}`
    }),
  )
  compared.byProcess += 1
  return (await runWeir(['usage', ...args, ...more], environment)).stdout
}

/** Compares the page of JSON, the records, both streams, and what `weir usage` prints of either. */
async function expectAsRecords(one: UnitQuestion, isOwn: boolean) {
  const key = isOwn ? 'acme-key' : undefined
  const { status, body } = await asked(pathOf(one, { numbers: 'text', limit: '10000' }), key)
  const foreign = isOwn && one.filters.subject?.some((subject) => subject !== 'acme')
  expect(status).toBe(foreign ? 403 : 200)
  if (foreign) return
  const environment = { ...desk.environment, ...(key === undefined ? {} : { WEIR_ADMIN_TOKEN: key }) }
  const given = parametersOf(one, span)
  // A credential has two streams at a time.
  const streams = async () => ({
    csv: await streamed(pathOf(one, { format: 'csv', csv: 'exact' }), key),
    jsonl: await streamed(pathOf(one, { numbers: 'text', format: 'jsonl' }), key),
    printedCsv: await askCommand(environment, given, { format: 'csv', exact: true }),
  })
  const [recorded, json, { csv, jsonl, printedCsv }] = await Promise.all([
    unitsOfRecords(tables, one, span, isOwn ? 'acme' : undefined),
    askCommand(environment, given),
    streams(),
  ])
  // A question without groups has one row, also of nothing.
  const wanted = recorded.filter(isSomething)
  expect(
    body.rows
      .map((row) => flat(row, one))
      .filter(isSomething)
      .toSorted(),
  ).toEqual(wanted)
  expect(body.source).toBe('units_15m')
  const sums = { quantity: total(body.rows, 'quantity'), count: total(body.rows, 'count') }
  expect(body.totals).toEqual(one.units.length === 1 ? sums : undefined)
  const [names = [], ...lines] = readCsv(csv)
  expect(names).toEqual([...(one.step === 'total' ? [] : ['ts']), ...one.by, 'quantity', 'count'])
  expect(lines).toEqual(body.rows.map((row) => names.map((name) => String(row[name]))))
  const { rows, totals } = readExactly(json)
  expect([rows, totals]).toEqual([body.rows, body.totals])
  expect(printedCsv).toBe(csv)
  const objects = jsonl.trimEnd().split('\n').slice(0, -1)
  expect(objects.map((line) => JSON.parse(line))).toEqual(body.rows)
  if (compared.questions % processEvery === 0) {
    expect((await printed(one, environment, '--json', '--limit=10000'))?.trimEnd() ?? json).toBe(json)
    expect((await printed(one, environment, '--format=csv', '--exact')) ?? csv).toBe(csv)
  }
  compared.questions += 1
  compared.rows += wanted.length
}

const everything = {
  units: ['tokens', 'usd'],
  by: ['subject', 'unit', 'model', 'dimension.tag-b'],
  step: 'quarter_hour',
  zone: 'UTC',
  filters: {},
}

/** Settlements of what was open, and corrections of what was used, in a block of their own. */
async function settleLate() {
  const late = lateSettlements(records, 8)
  expect(late.length).toBeGreaterThan(50)
  await insertBlock(tables.client, { table: 'decisions', dedupToken: randomUUID(), lines: linesOf(late, randomUUID()) })
}

async function damageAndRepair() {
  for (const query of [
    "DELETE FROM weir.units_15m WHERE subject = 'acme' SETTINGS lightweight_deletes_sync = 2",
    'INSERT INTO weir.units_15m SELECT * FROM weir.units_15m WHERE notEmpty(dims) SETTINGS insert_deduplicate = 0',
  ])
    await tables.client.command({ query })
  const found = await asked(pathOf(everything, { numbers: 'text' }))
  const rows = found.body.rows.map((row) => flat(row, everything)).toSorted()
  expect(rows).not.toEqual(await unitsOfRecords(tables, everything, span))
  for (const rollup of await findRollups(tables.client)) {
    if (rollup.table === 'units_15m') await repairRollup(new RepairSession(tables.client, randomUUID()), rollup, span)
  }
}

const questions = Number(process.env.WEIR_TEST_QUESTIONS ?? 10)
/** Of so many questions, one is asked by a process of the command too. */
const processEvery = 20
const random = createSeededRandom()

test.each([
  ['the records came', async () => undefined],
  ['late settlements came', settleLate],
  ['the rollup lost rows, had others twice and was repaired', damageAndRepair],
])(
  `${questions} random questions have one answer after %s: of API, CSV, weir usage and records`,
  { timeout: 300_000 },
  async (when, happens) => {
    await happens()
    Object.assign(compared, { questions: 0, rows: 0, byProcess: 0 })
    // The same questions each time.
    await fc.assert(fc.asyncProperty(unitQuestion, fc.boolean(), expectAsRecords), {
      numRuns: questions,
      seed: random.seed,
    })
    await expectAsRecords(everything, false)
    process.stdout.write(`  WEIR_TEST_SEED=${random.seed}, after ${when}: ${JSON.stringify(compared)} compared\n`)
  },
)

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
  ).toEqual(await unitsOfRecords(tables, one, span))
})

test('With fill=zero every group has a row of each step', async () => {
  const one = { ...everything, units: ['usd'], by: ['dimension.tag-b'] }
  const groups = new Set((await asked(pathOf(one))).body.rows.map((row) => row['dimension.tag-b']))
  const { status, body } = await asked(pathOf(one, { fill: 'zero' }))
  expect([status, body.rows.length]).toEqual([200, groups.size * 6])
})
