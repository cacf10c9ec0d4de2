import type { Writable } from 'node:stream'
import type { UnitRow, UnitUsage, Usage, UsageRow } from '@weir/api/usage.ts'
import { change } from '@weir/core/format.ts'
import { printable } from '@weir/core/printable.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { askConsole, type ConsoleAddress, type ConsoleRequest, requireConsole } from '../console/console-client.ts'
import { type DownloadTarget, download } from '../console/download.ts'
import { countCell, momentCell } from '../terminal/cells.ts'
import { textTable } from '../text-table.ts'

/** The options of the command: those that are not named here are parameters of `GET /v1/usage`, in camel case. */
interface UsageOptions extends CommonOptions {
  /** Names of columns, separated by commas. */
  readonly by: string
  readonly limit: number
  readonly other: boolean
  /** Sums are compared with the span before, or with the one that begins then; undefined: with none. */
  readonly compare?: true | string
  /** Units whose quantities are summed instead of costs and decisions. */
  readonly unit?: readonly string[]
  /** Filters by label: `NAME=VALUE`. */
  readonly dimension?: readonly string[]
  /** Whether rows have their price. */
  readonly price: boolean
  /** `csv`, `jsonl` or `parquet`: the whole answer as it is, instead of a table. */
  readonly format?: string
  /** Whether texts of CSV stand as they are. */
  readonly exact: boolean
  /** The file for it. */
  readonly output?: string
  readonly [parameter: string]: string | number | boolean | readonly string[] | undefined
}

/** The most rows of a page. */
const pageRowsMax = 10_000

/** `keyId` as `key_id`. */
const inQuery = (option: string) => option.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** A row of either kind of answer. */
type Row = Partial<Omit<UsageRow, 'previous'> & Pick<UnitRow, 'quantity'>>

const sumsOf = ({ quantity: sum, cost, count, denied, change: changed, amount, currency }: Row, money?: string) => [
  ...(sum === undefined
    ? [cost, count, denied].map((one) => countCell(one ?? null))
    : [countCell(sum, money), countCell(count ?? null)]),
  ...(changed === undefined ? [] : [change(changed)]),
  ...(amount === undefined ? [] : [amount ?? '-', currency ?? '-']),
]

/** Filters by label as parameters. */
const labelsOf = (filters: readonly string[]) =>
  Object.fromEntries(
    [...Map.groupBy(filters, (one) => one.slice(0, one.indexOf('=')))].map(([name, of]) => {
      return [`dimension.${name}`, of.map((one) => one.slice(name.length + 1))]
    }),
  )

const namesOf = (row: Row, by: readonly string[]) =>
  row.other === true
    ? by.map((_, at) => (at === 0 ? `other (${countCell(row.groups ?? 0)})` : ''))
    : by.map((name) => printable(String(row[name as keyof Row] ?? '')) || '-')

const lateJournals = (silent: number) =>
  silent === 1
    ? 'a journal has stopped reporting: its records will be counted later'
    : `${silent} journals have stopped reporting: their records will be counted later`

/** More than 100 are not counted. */
function reportGaps(gaps: number, { report }: CommandContext): void {
  if (gaps > 0) report(`${gaps} gaps: some decisions in this period are permanently missing; see the table weir.gaps`)
}

/** Writes the whole answer as the console streams it, to a file or to standard output. */
async function downloadUsage(
  console: ConsoleAddress,
  query: NonNullable<ConsoleRequest['query']>,
  target: Pick<DownloadTarget, 'file' | 'stdout'>,
  context: CommandContext,
): Promise<void> {
  const onBytes = (bytes: number) => context.progress.tell(`${(bytes / 1e6).toFixed(1)} MB`)
  const request = { path: '/v1/usage', query }
  const headers = await download(console, request, { ...target, signal: context.signal, onBytes })
  context.report(`counted until ${momentCell(headers.get('weir-complete-through'), 'not known yet')}`)
  const silent = Number(headers.get('weir-silent') ?? 0)
  if (silent > 0) context.report(lateJournals(silent))
  reportGaps(Number(headers.get('weir-gaps') ?? 0), context)
}

/**
 * Prints usage as a table, or the console's own answers, a line each: asks for pages until it has `limit` rows. With a
 * format the whole answer goes to `output`.
 */
export async function showUsage(
  { data, json, by: given, limit, other, compare, price, format, exact, output, ...asked }: UsageOptions,
  context: CommandContext,
  stdout: Writable = process.stdout,
): Promise<void> {
  // Each customer has a month of its own.
  if (price && asked.period !== undefined && asked.subject === undefined) {
    const spend = { data, json, period: String(asked.period), format, output }
    return (await import('./month-spend.ts')).showMonthSpend(spend, context, stdout)
  }
  const console = requireConsole(context.environment, data)
  // Only subjects have a price.
  const names = given === '' && price ? 'subject' : given
  const by = names === '' ? [] : names.split(',')
  const parameters = {
    ...Object.fromEntries(Object.entries(asked).map(([name, value]) => [inQuery(name), value])),
    ...labelsOf(asked.dimension ?? []),
    dimension: undefined,
    by: names || undefined,
    other: other ? undefined : false,
    compare: compare === true ? 'previous' : compare,
    price: price || undefined,
  }
  if (format !== undefined) {
    const query = { ...parameters, format, csv: exact ? 'exact' : undefined }
    if (output === undefined) context.progress.end()
    return downloadUsage(console, query, { file: output, stdout }, context)
  }
  const ask = async (rowsMax: number, after: string | undefined) => {
    const query = { ...parameters, limit: rowsMax, after, numbers: json ? 'json' : 'text' }
    return await askConsole<Usage | UnitUsage>(console, { path: '/v1/usage', query })
  }
  const rows: Row[] = []
  let page: Usage | UnitUsage | undefined
  do {
    const { body, text } = await ask(Math.min(limit - rows.length, pageRowsMax), page?.next ?? undefined)
    page = body
    rows.push(...body.rows)
    context.progress.tell(`${rows.length} rows`)
    if (json) context.print(text, 'exactly')
  } while (page.next !== null && rows.length < limit)
  if (json) return
  const isTimed = page.step !== 'total'
  const columns = [...(isTimed ? ['FROM'] : []), ...by.map((name) => name.toUpperCase())]
  const more = [...(compare === undefined ? [] : ['CHANGE']), ...(price ? ['AMOUNT', 'CURRENCY'] : [])]
  const sums = asked.unit === undefined ? ['UNITS', 'DECISIONS', 'REFUSED'] : ['QUANTITY', 'RECORDS']
  const head = [...columns, ...sums, ...more]
  const { totals } = page
  const money = 'currency' in page ? page.currency : undefined
  const hasTotal = columns.length > 0 && totals !== undefined
  const total = hasTotal ? [['total', ...columns.slice(1).map(() => ''), ...sumsOf(totals, money)]] : []
  const lines = rows.map((row) => [
    ...(isTimed ? [momentCell(row.ts)] : []),
    ...namesOf(row, by),
    ...sumsOf(row, money),
  ])
  context.print(textTable([head, ...lines, ...total]))
  const span = `${momentCell(page.from)} to ${momentCell(page.to)}`
  context.report(`counted until ${momentCell(page.complete_through, 'not known yet')}; period: ${span}`)
  for (const { since } of page.silent)
    context.report(`no reports from a journal since ${momentCell(since)}: its records will be counted later`)
  reportGaps(page.gaps.length, context)
  if (page.next !== null) context.report(`there are more rows: raise --limit (currently ${limit})`)
}
