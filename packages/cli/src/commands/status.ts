import type { Status } from '@weir/api/status.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { consoleAnswer } from '../console/console-client.ts'
import { momentCell } from '../terminal/cells.ts'
import { textTable } from '../text-table.ts'

/** A metric's name without what all have: `weir_consumer_lag_records` is `consumer_lag_records`. */
const shortName = (metric: string) => metric.replace(/^weir_/, '')

function rowsOf({ at, complete_through: through, policy, processes }: Status): string[][] {
  const behindS = through === null ? undefined : (Date.parse(at) - Date.parse(through)) / 1_000
  const metrics = (of: Status['processes'][number]['metrics']) =>
    Object.entries(of).map(([metric, value]) => `${shortName(metric)} ${value}`)
  return [
    ['counted until', behindS === undefined ? 'not known' : `${momentCell(through)} (${behindS.toFixed(1)} s ago)`],
    [
      'policy',
      policy === null ? 'never changed here' : `change ${policy.change} at ${momentCell(policy.at)} by ${policy.by}`,
    ],
    ...processes.map(({ name, ready, metrics: of }) => [
      name,
      [ready ? 'ready' : 'NOT READY', ...metrics(of)].join(', '),
    ]),
  ]
}

/** Prints how everything stands. Resolves to whether there is nothing to look at. */
export async function showStatus(options: CommonOptions, context: CommandContext): Promise<boolean> {
  const status = await consoleAnswer<Status>(context, options, { path: '/v1/status' })
  if (options.json) context.print(JSON.stringify(status))
  else {
    context.print(textTable(rowsOf(status)))
    for (const line of status.warnings) context.print(`warning: ${line.replace(': warning: ', ': ')}`)
    for (const line of status.look) context.print(`WARN  ${line}`)
    if (status.processes.length === 0) context.report('the console has no process addresses: set WEIR_STATUS_URLS')
  }
  return status.ok
}
