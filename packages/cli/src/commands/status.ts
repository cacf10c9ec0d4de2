import type { CommandContext, CommonOptions } from '../command-context.ts'
import { consoleAnswer } from '../console/console-client.ts'
import { textTable } from '../text-table.ts'

/** The console's answer about everything that runs. */
export interface Status {
  readonly at: string
  readonly ok: boolean
  readonly look: readonly string[]
  readonly warnings: readonly string[]
  readonly complete_through: string | null
  readonly policy: { readonly change: string; readonly at: string; readonly by: string } | null
  readonly processes: readonly {
    readonly name: string
    readonly ready: boolean
    readonly metrics: Readonly<Record<string, number>>
  }[]
}

/** A metric's name without what all have: `weir_consumer_lag_records` is `consumer_lag_records`. */
const shortName = (metric: string) => metric.replace(/^weir_/, '')

function rowsOf({ at, complete_through: through, policy, processes }: Status): string[][] {
  const behindS = through === null ? undefined : (Date.parse(at) - Date.parse(through)) / 1_000
  const metrics = (of: Readonly<Record<string, number>>) =>
    Object.entries(of).map(([metric, value]) => `${shortName(metric)} ${value}`)
  return [
    ['counted until', behindS === undefined ? 'not known' : `${through} (${behindS.toFixed(1)} s ago)`],
    ['policy', policy === null ? 'never changed here' : `change ${policy.change} at ${policy.at} by ${policy.by}`],
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
    for (const line of status.look) context.print(`LOOK: ${line}`)
    if (status.processes.length === 0) context.report('WEIR_STATUS_URLS of the console names no processes to ask')
  }
  return status.ok
}
