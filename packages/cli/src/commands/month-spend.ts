import type { Writable } from 'node:stream'
import type { MonthSpend } from '@weir/api/money.ts'
import { change, money } from '@weir/core/format.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { consoleAnswer, requireConsole } from '../console/console-client.ts'
import { download } from '../console/download.ts'
import { countCell, momentCell } from '../terminal/cells.ts'
import { textTable } from '../text-table.ts'

/** Prints what a month costs every customer, with totals by currency; with `csv` the same as a file. */
export async function showMonthSpend(
  options: CommonOptions & {
    readonly period: string
    readonly format?: string | undefined
    readonly output?: string | undefined
  },
  context: CommandContext,
  stdout: Writable = process.stdout,
): Promise<void> {
  const { period, format, output, json, data } = options
  const path = '/v1/spend/month'
  if (format !== undefined) {
    const console = requireConsole(context.environment, data)
    const target = { file: output, stdout, signal: context.signal, onBytes: () => undefined }
    await download(console, { path, query: { period, format } }, target)
    return
  }
  const found = await consoleAnswer<MonthSpend>(context, options, { path, query: { period, top: 10_000 } })
  if (json) return context.print(JSON.stringify(found))
  const head = ['SUBJECT', 'PLAN', 'AMOUNT', 'CURRENCY', 'MONTH BEFORE', 'CHANGE', 'FORECAST']
  const cells = ({ amount, currency, previous, change: changed, forecast }: MonthSpend['totals'][number]) => [
    money(amount),
    currency,
    money(previous),
    change(changed),
    forecast === null ? '-' : money(forecast),
  ]
  const rows = found.rows.map((row) => [row.subject, row.plan, ...cells(row)])
  context.print(textTable([head, ...rows, ...found.totals.map((total) => ['total', '', ...cells(total)])]))
  if (found.left_out > 0) context.report(`${countCell(found.left_out)} more rows: use --format csv to list all`)
  context.report(`counted until ${momentCell(found.complete_through, 'not known yet')}`)
}
