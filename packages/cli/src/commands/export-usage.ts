import { existsSync, renameSync, writeFileSync } from 'node:fs'
import type { UsageExport } from '@weir/api/money.ts'
import { isFields, isText, parseJson } from '@weir/contracts/fields.ts'
import { type CsvColumns, csvOf } from '@weir/core/csv.ts'
import { WeirError } from '@weir/core/errors.ts'
import { eventOf, lagoBatches, stripeCsv } from '../billing/billing-events.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { consoleAnswer } from '../console/console-client.ts'
import { readInputFile } from '../read-input-file.ts'
import { momentCell } from '../terminal/cells.ts'

interface ExportOptions extends CommonOptions {
  readonly from?: string
  /** The file that says how far the last export went. */
  readonly state?: string
  readonly again: boolean
  readonly to?: 'stripe' | 'lago'
  /** A file of JSON. */
  readonly customers?: string
}

/** Cursors of the last export: `before` where it began, null for a first one, and `last` where it ended. */
interface ExportState {
  readonly before: string | null
  readonly last: string
}

/** Rows of a page: the console's most. */
const pageRowsMax = 1_000

/** Reads a file of JSON. Throws COMMAND_INVALID with `rule` unless `isRight`. */
function readJsonFile<T>(
  file: string,
  rule: string,
  isRight: (value: Readonly<Record<string, unknown>>) => boolean,
): T {
  const read = parseJson(readInputFile(file, 'COMMAND_INVALID', `The file ${file}`))
  if (isFields(read) && isRight(read)) return read as T
  throw new WeirError('COMMAND_INVALID', `${file} must be ${rule}.`)
}

const readCustomers = (file: string): Readonly<Record<string, string>> =>
  readJsonFile(file, 'JSON that names the customer of each subject: {"acme": "cus_123"}', (names) =>
    Object.values(names).every(isText),
  )

/** Reads the state; undefined before the first export. */
const readState = (file: string): ExportState | undefined =>
  existsSync(file)
    ? readJsonFile(
        file,
        'the state of an export',
        ({ before, last }) => isText(last) && (before === null || isText(before)),
      )
    : undefined

/** Says what the first page is asked by. */
function rangeOf({ from, state: file, again }: ExportOptions, state: ExportState | undefined) {
  const wrong = (message: string) => new WeirError('COMMAND_INVALID', message)
  if (again && file === undefined) throw wrong('--again repeats the export of a state: name it with --state FILE.')
  if (again && state === undefined) throw wrong(`--again has nothing to repeat: there is no ${file}.`)
  if (state !== undefined && from !== undefined) {
    throw wrong(`--from is of a first export: ${file} says where the next begins. Leave it out.`)
  }
  if (state === undefined && from === undefined) throw wrong('Name the first hour with --from.')
  if (state === undefined) return { from }
  return again ? { since: state.before ?? undefined, until: state.last } : { since: state.last }
}

const columns: CsvColumns = {
  id: 'exact',
  subject: 'text',
  hour: 'exact',
  correction: 'exact',
  prices: 'exact',
  line: 'exact',
  unit: 'exact',
  quantity: 'exact',
}

/** Prints rows in the form that is asked for. */
function createPrinter({ json, to, customers: file }: ExportOptions, { print }: CommandContext) {
  const customers = file === undefined ? undefined : readCustomers(file)
  let hasHead = false
  const printCsv = (csv: string) => {
    const text = hasHead ? csv.slice(csv.indexOf('\n') + 1) : csv
    hasHead = true
    // `print` ends it by a line feed.
    if (text !== '') print(text.slice(0, -1), 'exactly')
  }
  return ({ items, to: end }: UsageExport): void => {
    const unnamed = items.find(({ subject }) => customers !== undefined && !Object.hasOwn(customers, subject))
    if (unnamed !== undefined) {
      const subject = JSON.stringify(unnamed.subject)
      const hint = 'The printed rows are correct but incomplete. Add them, then run the command with --again.'
      throw new WeirError('COMMAND_INVALID', `${file} names no customer for ${subject}. ${hint}`)
    }
    if (to === undefined) {
      const rows = items.map((item) => ({ ...item, correction: String(item.correction) }))
      if (json) for (const item of items) print(JSON.stringify(item))
      else printCsv(csvOf(columns, rows))
      return
    }
    const toMs = Date.parse(end)
    const events = items.map((item) => eventOf(item, { customer: customers?.[item.subject] ?? item.subject, toMs }))
    if (to === 'stripe') printCsv(stripeCsv(events))
    else for (const batch of lagoBatches(events)) print(batch)
  }
}

/**
 * Prints the usage of whole hours by line of the price list, as billing systems take it, and sends nothing. With a
 * state it goes on where the last export ended. The state is written before the first row: a run that ended early is
 * repeated with `again`, and its rows have the same ids.
 */
export async function exportUsage(options: ExportOptions, context: CommandContext): Promise<void> {
  const { state: file, again } = options
  const state = file === undefined ? undefined : readState(file)
  const range = rangeOf(options, state)
  const printPage = createPrinter(options, context)
  const ask = (query: Readonly<Record<string, string | number | undefined>>) =>
    consoleAnswer<UsageExport>(context, options, { path: '/v1/usage/export', query: { ...query, limit: pageRowsMax } })
  let page = await ask(range)
  if (file !== undefined && !again) {
    const written: ExportState = { before: range.since ?? null, last: page.cursor }
    writeFileSync(`${file}.new`, JSON.stringify(written), { flush: true })
    renameSync(`${file}.new`, file)
  }
  let rows = 0
  let unpriced = 0n
  for (;;) {
    printPage(page)
    rows += page.items.length
    unpriced += BigInt(page.unpriced.decisions)
    context.progress.tell(`${rows} rows`)
    if (page.next === null) break
    page = await ask({ since: range.since, until: page.cursor, after: page.next })
  }
  context.report(`${rows} rows until ${momentCell(page.to)}`)
  if (unpriced > 0n) context.report(`${unpriced} decisions match no price line and are not exported`)
  if (page.silent.length > 0) context.report('a journal has stopped reporting: a later export will include its records')
}
