import type { Writable } from 'node:stream'
import type { MonthSpend } from '@weir/api/money.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { consoleAnswer, requireConsole } from '../console/console-client.ts'
import { download } from '../console/download.ts'
import { textTable } from '../text-table.ts'

const changeOf = (change: number | null) =>
  change === null
    ? '-'
    : `${change > 0 ? '+' : ''}${(change * 100).toLocaleString('en', { maximumFractionDigits: 1 })}%`

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
  const found = await consoleAnswer<MonthSpend>(context, options, { path, query: { period } })
  if (json) return context.print(JSON.stringify(found))
  const head = ['SUBJECT', 'PLAN', 'AMOUNT', 'CURRENCY', 'MONTH BEFORE', 'CHANGE', 'FORECAST']
  const money = ({ amount, currency, previous, change, forecast }: MonthSpend['totals'][number]) => [
    amount,
    currency,
    previous,
    changeOf(change),
    forecast ?? '-',
  ]
  const rows = found.rows.map((row) => [row.subject, row.plan, ...money(row)])
  context.print(textTable([head, ...rows, ...found.totals.map((total) => ['total', '', ...money(total)])]))
  context.report(`counted until ${found.complete_through ?? 'nothing is known yet'}`)
}
