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

interface Change {
  readonly at: string
  readonly by: string
  readonly summary: readonly { readonly what: string; readonly kind: string; readonly name: string }[]
  readonly total: number
  readonly entities: readonly {
    readonly kind: string
    readonly name: string
    readonly before: Readonly<Record<string, unknown>> | null
    readonly after: Readonly<Record<string, unknown>> | null
  }[]
}

/** The settings in which two bodies differ, from what to what. */
function differences({ before, after }: Change['entities'][number]): readonly string[] {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  const texts = names.map((name) => [name, JSON.stringify(before?.[name]) ?? '-', JSON.stringify(after?.[name]) ?? '-'])
  return texts.filter(([, was, is]) => was !== is).map(([name, was, is]) => `    ${name}: ${was} → ${is}`)
}

/** Shows one change, from what to what. */
export async function showChange(id: string, options: CommonOptions, context: CommandContext): Promise<void> {
  const change = await consoleAnswer<Change>(context, options, { path: `/v1/changes/${encodeURIComponent(id)}` })
  if (options.json) return context.print(JSON.stringify(change))
  const { at, by, summary, total, entities } = change
  context.print(`${at}  ${by}`)
  for (const one of entities) {
    const mark = one.before === null ? '+' : one.after === null ? '-' : '~'
    context.print([`${mark} ${one.kind} ${one.name}`, ...differences(one)].join('\n'))
  }
  const isShown = (kind: string, name: string) => entities.some((one) => one.kind === kind && one.name === name)
  for (const { what, kind, name } of summary) if (!isShown(kind, name)) context.print(`  ${what} ${kind} ${name}`)
  if (total > summary.length) context.report(`the change has ${total} lines; the first are shown`)
}
