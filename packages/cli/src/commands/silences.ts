import type { Silence } from '@weir/api/alerts.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { consoleAnswer } from '../console/console-client.ts'
import { type Listing, printAll } from '../console/listing.ts'
import { momentCell } from '../terminal/cells.ts'

/** What a silence is for, as flags that may be repeated. */
interface Choice {
  readonly subject?: readonly string[]
  readonly limit?: readonly string[]
  readonly type?: readonly string[]
}

/** Says in few words which alerts a silence is for. */
const inWords = ({ subjects, limits, types }: Silence) =>
  [subjects, limits, types].flatMap((names) => (names === undefined ? [] : [names.join(' or ')])).join(', ')

/** Makes a silence and prints its name. */
export async function addSilence(
  options: CommonOptions & Choice & { readonly for: string; readonly from?: string; readonly reason?: string },
  context: CommandContext,
): Promise<void> {
  const { subject: subjects, limit: limits, type: types, for: length, from, reason } = options
  const body = { subjects, limits, types, for: length, from, reason }
  const made = await consoleAnswer<Silence>(context, options, { method: 'POST', path: '/v1/silences', body })
  if (options.json) return context.print(JSON.stringify(made))
  context.report(
    `no endpoint gets alerts about ${inWords(made)} from ${momentCell(made.from)} to ${momentCell(made.until)}:`,
  )
  context.print(made.name)
}

/** Ends a silence: alerts from now on are sent. */
export async function endSilence(name: string, options: CommonOptions, context: CommandContext): Promise<void> {
  await consoleAnswer(context, options, { method: 'DELETE', path: `/v1/silences/${encodeURIComponent(name)}` })
  if (options.json) context.print(JSON.stringify({ name, ended: true }))
  else context.report(`silence ${name} has ended`)
}

const listing: Listing<Silence> = {
  head: ['STATE', 'FROM', 'UNTIL', 'ALERTS', 'BY', 'REASON', 'NAME'],
  cells: (one) => [
    one.state,
    momentCell(one.from),
    momentCell(one.until),
    inWords(one),
    one.by,
    one.reason ?? '',
    one.name,
  ],
  none: 'There are no silences.',
}

/** Lists the silences there are, and those that ended within five days. */
export async function listSilences(options: CommonOptions, context: CommandContext): Promise<void> {
  await printAll({ path: '/v1/silences', query: { limit: 1_000 } }, listing, options, context)
}
