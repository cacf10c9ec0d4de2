import type { Quote, Spend } from '@weir/api/money.ts'
import { moment } from '@weir/core/format.ts'
import { printable } from '@weir/core/printable.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { askConsole, requireConsole } from '../console/console-client.ts'
import { countCell, momentCell } from '../terminal/cells.ts'
import { textTable } from '../text-table.ts'

const quoteRows = ({ lines, flat, minimum_added, total, currency }: Quote) => [
  ['LINE', 'QUANTITY', 'OF', `AMOUNT ${currency}`],
  ...lines.map(({ name, measure, quantity, amount }) => [name, countCell(quantity), measure, amount]),
  ...(/[1-9]/.test(flat) ? [['flat', '', '', flat]] : []),
  ...(/[1-9]/.test(minimum_added) ? [['up to the minimum', '', '', minimum_added]] : []),
  ['total', '', '', total],
]

/** Reads JSON with its whole numbers as they are written, also beyond 2^53. */
const readExactly = (text: string) =>
  JSON.parse(text, (_, value, ...[context]: readonly { readonly source?: string }[]) =>
    typeof value === 'number' && Number.isInteger(value) ? BigInt(context?.source ?? value) : value,
  )

/** Shows what the running month of a subject costs so far. */
export async function showSpend(subject: string, options: CommonOptions, context: CommandContext): Promise<void> {
  const console = requireConsole(context.environment, options.data)
  const { text } = await askConsole<unknown>(console, { path: '/v1/spend', query: { subject } })
  if (options.json) return context.print(text, 'exactly')
  const { period, quote, forecast, complete_through }: Spend = readExactly(text)
  context.print(
    `${printable(subject)}  ${moment(period.from, period.time_zone)} to ${moment(period.to, period.time_zone)} (${period.time_zone})`,
  )
  context.print(textTable(quoteRows(quote)))
  if (forecast !== undefined) context.print(`forecast at this pace  ${forecast.total} ${forecast.currency}`)
  context.report(`counted until ${momentCell(complete_through, 'not known yet')}`)
}
