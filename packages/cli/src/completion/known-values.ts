import { rollupDimensions } from '@weir/core/usage/usage-query.ts'
import type { CommandContext } from '../command-context.ts'
import { askConsole, findConsole } from '../console/console-client.ts'

/** A person who pressed Tab waits no longer than this. */
const deadlineMs = 1_000
/** More than a person looks through; with another letter those that still fit come. */
const valuesMax = 100

/** Lists of the policy that options and arguments name things of; keys have an id, all else has a name. */
const lists: Readonly<Record<string, string>> = {
  limit: 'limits',
  plan: 'plans',
  endpoint: 'endpoints',
  'keys rotate id': 'keys',
  'keys revoke id': 'keys',
  'keys create subject': 'subjects',
  'spend subject': 'subjects',
  'alerts test-endpoint name': 'endpoints',
  'silences end name': 'silences',
}

interface Page {
  readonly items: readonly { readonly name?: string; readonly id?: string; readonly value?: string }[]
}

/**
 * Asks the running Weir for the values of an option or an argument that begin so: names of the policy, or what the
 * decisions of the last day had. None where no Weir answers in time, or nothing is known about it.
 */
export async function askValues(
  of: string,
  beginning: string,
  { data, context }: { readonly data: string; readonly context: CommandContext },
): Promise<readonly string[]> {
  const console = findConsole(context.environment, data)
  if (console === undefined) return []
  const list = lists[of]
  const dimension = rollupDimensions.find((one) => one === of.replaceAll('-', '_'))
  if (list === undefined && dimension === undefined) return []
  const request =
    list === undefined
      ? { path: `/v1/dimensions/${dimension}`, query: { prefix: beginning } }
      : // What has the beginning for its whole name is typed already.
        { path: `/v1/${list}`, query: { after: beginning, limit: valuesMax } }
  try {
    const { body } = await askConsole<Page>(console, { ...request, deadlineMs })
    const values = body.items.map(({ name, id, value }) => name ?? id ?? value ?? '')
    return values.filter((one) => one !== '' && one.startsWith(beginning))
  } catch {
    return []
  }
}
