import { quoted } from '@weir/clickhouse/audit/rollups.ts'
import fc from 'fast-check'
import type { Tables } from '../servers/tables.ts'
import type { Parameters } from './ask-command.ts'

/** A question about usage by unit. */
export interface UnitQuestion {
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
  parent: 'd.parents[1]',
  parents: 'toJSONString(d.parents)',
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
  parent: ['', 'bolt', 'none'],
  parents: ['[]', '["bolt","acme"]', 'none'],
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

/** Any question, of units, columns and values that there are and that are not. */
export const unitQuestion: fc.Arbitrary<UnitQuestion> = fc.record({
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
    )
    .chain((some) => fc.constantFrom<typeof some>(some, { ...some, within: ['acme', 'none'] })),
})

const iso = (ms: number) => new Date(ms).toISOString()
type Span = Readonly<Record<'fromMs' | 'toMs', number>>

/** Its parameters, as a person gives them. */
export const parametersOf = ({ units, by, step, zone, filters }: UnitQuestion, { fromMs, toMs }: Span): Parameters => ({
  ...filters,
  unit: units,
  from: iso(fromMs),
  to: iso(toMs),
  by: by.join(),
  step,
  time_zone: zone,
})

/** The answer by the raw records alone, a text for each row; `own`: for a customer, of its own rows. */
export async function unitsOfRecords(
  tables: Tables,
  { units, by, step, zone, filters }: UnitQuestion,
  { fromMs, toMs }: Span,
  own?: string,
): Promise<string[]> {
  const start = starts[step]
  // A customer is not told who is above it.
  const seen = own === undefined ? 'd.parents' : `arraySlice(d.parents, 1, indexOf(d.parents, ${quoted(own)}))`
  const columnOf = (name: string) => (columns[name] ?? "''").replace('d.parents', seen)
  const named = [
    ...(start === undefined ? [] : [`toUnixTimestamp(${start}(toTimeZone(d.ts, '${zone}')))`]),
    ...by.map(columnOf),
  ]
  const conditions = Object.entries(filters).map(([name, of]) => {
    if (name === 'within') return `(d.subject IN (${of.map(quoted)}) OR hasAny(${seen}, [${of.map(quoted)}]))`
    const [, not = '', column = ''] = /^(not_)?(.*)$/.exec(name) ?? []
    return `${columnOf(column)} ${not === '' ? 'IN' : 'NOT IN'} (${of.map(quoted).join(', ')})`
  })
  const where = [
    `d.outcome = 'allow' AND u.1 IN (${units.map(quoted).join(', ')})`,
    `d.ts >= fromUnixTimestamp64Milli(${fromMs}) AND d.ts < fromUnixTimestamp64Milli(${toMs})`,
    ...(own === undefined ? [] : [`(d.subject = ${quoted(own)} OR has(d.parents, ${quoted(own)}))`]),
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
