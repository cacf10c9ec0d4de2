import type { CommandContext, CommonOptions } from '../command-context.ts'
import { consoleAnswer } from '../console/console-client.ts'
import { textTable } from '../text-table.ts'

interface Page {
  readonly items: readonly {
    readonly id: string
    readonly at: string
    readonly by: string
    readonly summary: readonly { readonly what: string; readonly kind: string; readonly name: string }[]
    readonly total: number
  }[]
  readonly next: string | null
}

/** Lists who changed what and when, the newest first. */
export async function listChanges(
  options: CommonOptions & { readonly limit: number; readonly after?: string },
  context: CommandContext,
): Promise<void> {
  const query = { limit: options.limit, after: options.after }
  const { items, next } = await consoleAnswer<Page>(context, options, { path: '/v1/changes', query })
  if (options.json) return context.print(JSON.stringify(items))
  const rows = items.map(({ id, at, by, summary, total }) => {
    const [first] = summary
    const more = total > 1 ? ` and ${total - 1} more` : ''
    return [at, by, first === undefined ? '-' : `${first.what} ${first.kind} ${first.name}${more}`, id]
  })
  if (rows.length === 0) context.report('There are no changes.')
  else context.print(textTable([['TIME', 'BY', 'WHAT', 'ID'], ...rows]))
  if (next !== null) context.report(`there are more: ask for them with --after ${next}`)
}
