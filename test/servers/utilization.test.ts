import { utilizationOrders } from '@weir/api/query/columns.ts'
import { isUtilizationPosition, parseUtilizationQuery, utilizationPosition } from '@weir/api/query/utilization-query.ts'
import { askUtilization, type UtilizationRow } from '@weir/console/usage/utilization-queries.ts'
import { Reach } from '@weir/core/usage/reach.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTables } from '../support/servers/tables.ts'

const [quarterMs, dayMs] = [900_000, 86_400_000]
const startMs = Date.UTC(2026, 10, 10)
const nowMs = startMs + 2 * dayMs + 7 * 60_000
/** Of two days, and a time of which the pace is taken in the middle of them. */
const paceFromMs = startMs + dayMs
const subjects = ['acme', 'acme-2', "o'neil", 'ip:2001:db8::1']
const limits = ['minute', 'day', "m'onth"]

const decision = fc.record({
  tsMs: fc.integer({ min: 0, max: 60 }).map((at) => startMs + at * 47 * 60_000),
  subject: fc.constantFrom(...subjects),
  isDenied: fc.boolean(),
  by: fc.constantFrom(...limits, ''),
  shadowedBy: fc.constantFrom(...limits, ''),
  cost: fc.constantFrom(0, 1, 5, 900_000_000),
  count: fc.constantFrom(1, 1, 3, 20_000_000),
  // Few uses and sizes, so that many rows have the same share.
  met: fc.uniqueArray(
    fc.record({
      name: fc.constantFrom(...limits),
      size: fc.constantFrom(0, 10, 20),
      used: fc.integer({ max: 10, min: 0 }),
    }),
    { selector: ({ name }) => name, maxLength: 3 },
  ),
})
type Decision = typeof decision extends fc.Arbitrary<infer T> ? T : never
const all = fc.sample(decision, { numRuns: 600, seed: 22 })

type Met = Decision['met'][number] & { readonly d: Decision }
/** What the decisions of one subject that met one limit say, in words of their own. */
function rowOf(met: readonly Met[], fromMs: number, toMs: number) {
  const bucket = (ms: number) => Math.floor(ms / quarterMs) * quarterMs
  const shareOf = ({ size, used }: { size: number; used: number }) => (size === 0 ? 0 : Math.fround(used / size))
  const asked = met.filter(({ d }) => d.tsMs >= fromMs && d.tsMs < toMs)
  const share = Math.max(...asked.map(shareOf))
  const atMs = Math.max(...asked.filter((one) => shareOf(one) === share).map(({ d }) => bucket(d.tsMs)))
  const then = asked.filter(({ d }) => bucket(d.tsMs) === atMs)
  const sum = (of: (one: Met) => boolean, units: (d: Decision) => bigint, from: readonly Met[] = asked) =>
    from.filter(of).reduce((total, { d }) => total + units(d), 0n)
  const counted = (d: Decision) => BigInt(d.count)
  const late = met.filter(({ d }) => d.tsMs >= paceFromMs)
  const lastMs = Math.max(0, ...late.map(({ d }) => bucket(d.tsMs)))
  const costs = (from: readonly Met[]) =>
    sum(
      ({ d }) => !d.isDenied,
      (d) => BigInt(d.cost) * counted(d),
      from,
    )
  return {
    subject: met[0]?.d.subject ?? '',
    limit: met[0]?.name ?? '',
    share,
    used: String(Math.max(...then.map(({ used }) => used))),
    size: String(Math.max(...then.map(({ size }) => size))),
    at_ms: atMs,
    count: String(sum(() => true, counted)),
    refused: String(sum(({ d, name }) => d.isDenied && d.by === name, counted)),
    shadow_refused: String(sum(({ d, name }) => d.shadowedBy === name, counted)),
    cost: String(costs(asked)),
    pace_cost: Number(costs(late)),
    last_ms: lastMs,
    last_used: Math.max(0, ...late.filter(({ d }) => bucket(d.tsMs) === lastMs).map(({ used }) => used)),
  } satisfies UtilizationRow
}

type Asked = Readonly<Record<string, string | readonly string[]>>
function modelOf(given: Asked, own: readonly string[] | undefined): UtilizationRow[] {
  const [fromMs, toMs] = [Date.parse(String(given.from)), Date.parse(String(given.to))]
  const has = (name: string, value: string) => {
    const [only, except] = [given[name], given[`not_${name}`]]
    return (
      (only === undefined || [only].flat().includes(value)) &&
      !(except !== undefined && [except].flat().includes(value))
    )
  }
  const met = all
    .flatMap((d) => d.met.map((one) => ({ d, ...one })))
    .filter(({ d, name }) => has('subject', d.subject) && has('met_limit', name))
    .filter(({ d }) => d.subject.startsWith(String(given.subject_prefix ?? '')) && own?.includes(d.subject) !== false)
  const groups = [...Map.groupBy(met, ({ d, name }) => `${d.subject}\n${name}`).values()]
  const inTime = groups.filter((group) => group.some(({ d }) => d.tsMs >= fromMs && d.tsMs < toMs))
  const [from, to] = [given.share_from, given.share_to].map((text) =>
    text === undefined ? undefined : Math.fround(Number(text)),
  )
  const rows = inTime
    .map((group) => rowOf(group, fromMs, toMs))
    .filter(({ share }) => share >= (from ?? 0) && share < (to ?? 9))
  const order = String(given.order ?? '-share')
  const by = utilizationOrders.find((one) => order.endsWith(one) && order.replace('-', '') === one) ?? 'share'
  const compare = (a: UtilizationRow, b: UtilizationRow) =>
    by === 'share' ? a.share - b.share : Number(BigInt(a[by]) - BigInt(b[by]))
  const byName = (a: UtilizationRow, b: UtilizationRow) =>
    `${a.subject}\0${a.limit}` < `${b.subject}\0${b.limit}` ? -1 : 1
  return rows.toSorted((a, b) => (order.startsWith('-') ? -1 : 1) * compare(a, b) || byName(a, b))
}

const tables = await startTables()
beforeAll(async () => {
  await tables.client.command({ query: 'SYSTEM STOP MERGES weir.limits_15m' })
  for (let at = 0; at < all.length; at += 100) {
    const values = all
      .slice(at, at + 100)
      .map(({ tsMs, isDenied, by, shadowedBy, met, ...rest }) => ({
        ...rest,
        id: crypto.randomUUID(),
        ts: tsMs,
        outcome: isDenied ? 'deny' : 'allow',
        denied_by: by,
        shadowed_by: shadowedBy,
        limits: met.map((one) => ({ ...one, remaining: 0, reset_ms: 0, by: {} })),
      }))
    await tables.client.insert({
      table: 'weir.decisions',
      format: 'JSONEachRow',
      values,
      clickhouse_settings: { input_format_import_nested_json: 0, date_time_input_format: 'best_effort' },
    })
  }
}, 120_000)
afterAll(() => tables.close())

async function ask(given: Asked, own?: readonly string[], limit = 1_000) {
  const parsed = parseUtilizationQuery(given, nowMs)
  if (parsed.kind === 'problems') throw new Error(parsed.problems.join('; '))
  const reach = own === undefined ? Reach.everybody : Reach.of(own)
  const rows: UtilizationRow[] = []
  for (let after: readonly string[] | undefined; ; ) {
    const page = await askUtilization(tables.client, reach, parsed.query, { after, rowsMax: limit, paceFromMs })
    rows.push(...page.map((row) => ({ ...row, share: Math.fround(row.share) })))
    const last = page.at(-1)
    if (last === undefined || page.length < limit) return rows
    after = utilizationPosition(parsed.query, last)
    expect([after, isUtilizationPosition(parsed.query, after)]).toEqual([after, true])
  }
}

const at = fc.integer({ min: 0, max: 2 * 96 }).map((quarter) => startMs + quarter * quarterMs)
const question = fc
  .record(
    {
      span: fc.tuple(at, at).filter(([a, b]) => a !== b),
      order: fc.constantFrom(...utilizationOrders.flatMap((one) => [one, `-${one}`])),
      subject: fc.subarray(subjects, { minLength: 1 }),
      not_subject: fc.subarray(subjects, { minLength: 1 }),
      met_limit: fc.subarray(limits, { minLength: 1 }),
      not_met_limit: fc.subarray(limits, { minLength: 1 }),
      subject_prefix: fc.constantFrom('acme', '', "o'"),
      share_from: fc.constantFrom('0.7', '0.5', '0'),
      share_to: fc.constantFrom('1', '0.8'),
    },
    { requiredKeys: ['span'] },
  )
  .map(({ span, ...rest }): Asked => {
    const [from = 0, to = 0] = [...span].sort((a, b) => a - b)
    return { from: new Date(from).toISOString(), to: new Date(to).toISOString(), ...rest }
  })
const own = fc.option(fc.subarray(subjects), { nil: undefined })

test('100 random questions are answered as the decisions themselves say, in one page and in pages of two, before parts are merged and afterwards', {
  timeout: 180_000,
}, async () => {
  const check = async (numRuns: number) =>
    await fc.assert(
      fc.asyncProperty(question, own, async (given, reach) => {
        const model = modelOf(given, reach)
        expect(await ask(given, reach)).toEqual(model)
        expect(await ask(given, reach, 2)).toEqual(model)
      }),
      { numRuns },
    )
  const rows = async () =>
    (await tables.rows<{ n: string }>('SELECT toString(count()) AS n FROM weir.limits_15m'))[0]?.n
  const before = Number(await rows())
  await check(60)
  await tables.client.command({ query: 'SYSTEM START MERGES weir.limits_15m' })
  await tables.client.command({ query: 'OPTIMIZE TABLE weir.limits_15m FINAL' })
  expect(Number(await rows())).toBeLessThan(before)
  await check(40)
})

test('a share of exactly 0.7 is at least 0.7, and not below it', async () => {
  const given = { from: new Date(startMs).toISOString(), to: new Date(startMs + 2 * dayMs).toISOString() }
  expect(modelOf(given, undefined).map(({ share }) => share)).not.toEqual([])
  const decisionAt = (used: number) => `INSERT INTO weir.decisions (id, ts, subject, outcome, cost, count, limits)
    SELECT generateUUIDv7(), fromUnixTimestamp64Milli(toInt64(${startMs - dayMs}), 'UTC'), 'seven', 'allow', 1, 1, [('exact', 10, ${used}, 0, 0, map(), '')]`
  await tables.client.command({ query: decisionAt(7) })
  const asked = { from: '2026-11-09', to: '2026-11-10', subject: 'seven' }
  expect((await ask({ ...asked, share_from: '0.7' })).map(({ used, size }) => [used, size])).toEqual([['7', '10']])
  expect(await ask({ ...asked, share_to: '0.7' })).toEqual([])
})
