import type { Status } from '@weir/api/status.ts'
import { printable } from '@weir/core/printable.ts'
import type { CommandContext } from '../command-context.ts'
import { askConsole, requireConsole } from '../console/console-client.ts'
import { readLauncher, readStateFile } from '../read-state-file.ts'
import { isAlive } from '../running-up.ts'

/** Who only asks what there is waits no longer than this. */
const deadlineMs = 3_000

/** Commands to try next, each with what it does. */
function next(commands: readonly (readonly [string, string])[]): string {
  const width = Math.max(...commands.map(([command]) => command.length))
  return ['', 'Next:', ...commands.map(([command, what]) => `  ${command.padEnd(width)}  ${what}`)].join('\n')
}

const help = ['./weir --help', 'every command'] as const

/** Says how the `weir up` of the data directory stands, where it has no console to ask. */
function withoutConsole(dataDir: string): string | undefined {
  const launcher = readLauncher(dataDir)
  if (launcher === undefined) return 'Weir does not run here, and has never run here.'
  if (!isAlive(launcher)) return `Weir is stopped. Its data is in ${dataDir}.`
  return readStateFile(dataDir, 'console') === undefined ? `Weir is starting (process ${launcher}).` : undefined
}

/**
 * Says what runs, whether all is well, and what to try next: about the console of the environment, else about the
 * `weir up` of the data directory. Resolves to whether there is nothing to look at.
 */
export async function showOverview(dataDir: string, context: CommandContext): Promise<boolean> {
  const isNamed = Boolean(context.environment.WEIR_CONSOLE_URL)
  const stopped = isNamed ? undefined : withoutConsole(dataDir)
  if (stopped !== undefined) {
    context.print(printable(stopped))
    context.print(next([['./weir up', 'Start everything on this machine'], help]))
    return true
  }
  const address = requireConsole(context.environment, dataDir)
  const status = (await askConsole<Status>(address, { path: '/v1/status', deadlineMs })).body
  const { ok, look, at, complete_through: through } = status
  const behind =
    through === null ? '' : `, counted until ${((Date.parse(at) - Date.parse(through)) / 1_000).toFixed(1)} s ago`
  const ingress = isNamed ? undefined : readStateFile(dataDir, 'ingress')
  const where = [...(ingress === undefined ? [] : [`ingress ${ingress}`]), `page and API ${address.url}`].join(', ')
  context.print(printable(`Weir runs: ${where}`))
  context.print(ok ? `All is well${behind}.` : `${look.length} to look at${behind}:`)
  for (const line of look) context.print(`  ${printable(line)}`)
  context.print(
    next([
      ...(ok ? [] : ([['./weir status', 'how every process stands']] as const)),
      ['./weir tail --denied', 'refusals as they are made'],
      ['./weir usage --by subject --top 10', 'who used most in the last 24 hours'],
      ['./weir why --subject ID --last', 'why a subject was refused'],
      help,
    ]),
  )
  return ok
}
