import type { Change, ListedChange } from '@weir/api/policy.ts'
import type { Page } from '@weir/api/schema.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { consoleAnswer } from '../console/console-client.ts'
import { differences } from '../console/file-changes.ts'
import { type Listing, printList } from '../console/listing.ts'
import { momentCell } from '../terminal/cells.ts'

const listing: Listing<ListedChange> = {
  head: ['TIME', 'BY', 'WHAT', 'ID'],
  cells: ({ id, at, by, summary: [first], total }) => {
    const more = total > 1 ? ` and ${total - 1} more` : ''
    // A file is named by its hash, which says nothing to a person.
    const what =
      first?.kind === 'policy'
        ? `apply a file: ${total - 1} changes`
        : `${first?.what} ${first?.kind} ${first?.name}${more}`
    return [momentCell(at), by, first === undefined ? '-' : what, id]
  },
  none: 'No changes.',
}

/** Lists who changed what and when, the newest first. */
export async function listChanges(
  options: CommonOptions & { readonly limit: number; readonly after?: string },
  context: CommandContext,
): Promise<void> {
  const query = { limit: options.limit, after: options.after }
  const { items, next } = await consoleAnswer<Page<ListedChange>>(context, options, { path: '/v1/changes', query })
  printList(items, listing, options, context)
  if (!options.json && next !== null) context.report(`more changes: --after ${next}`)
}

/** Shows one change, before and after. */
export async function showChange(id: string, options: CommonOptions, context: CommandContext): Promise<void> {
  const change = await consoleAnswer<Change>(context, options, { path: `/v1/changes/${encodeURIComponent(id)}` })
  if (options.json) return context.print(JSON.stringify(change))
  const { at, by, summary, total, entities } = change
  context.print(`${momentCell(at)}  ${by}`)
  for (const one of entities) {
    const mark = one.before === null ? '+' : one.after === null ? '-' : '~'
    context.print([`${mark} ${one.kind} ${one.name}`, ...differences(one, '-').map((line) => `    ${line}`)].join('\n'))
  }
  const isShown = (kind: string, name: string) => entities.some((one) => one.kind === kind && one.name === name)
  for (const { what, kind, name } of summary) if (!isShown(kind, name)) context.print(`  ${what} ${kind} ${name}`)
  if (total > summary.length) context.report(`${total} lines; only the first are shown`)
}
