import type { CommandContext, CommonOptions } from '../command-context.ts'
import { consoleAnswer } from '../console/console-client.ts'
import { textTable } from '../text-table.ts'

interface Block {
  readonly id: string
  readonly limit: string
  readonly subject: string | null
  readonly scope: Readonly<Record<string, string>>
  readonly since: string
  readonly until: string
  readonly refusals: number
}
interface Page {
  readonly complete: boolean
  readonly items: readonly Block[]
  readonly next: string | null
}

const countedBy = ({ scope }: Block) =>
  Object.entries(scope)
    .map(([part, value]) => `${part}=${value}`)
    .join(' ')

/** Lists which callers are blocked now, those that were blocked last first. */
export async function listBlocks(
  options: CommonOptions & { readonly limit?: string; readonly subject?: string; readonly ip?: string },
  context: CommandContext,
): Promise<void> {
  const { limit, subject, ip } = options
  const blocks: Block[] = []
  let isWhole = true
  for (let after: string | undefined | null; after !== null; ) {
    const query = { limit, subject, ip, after }
    const page: Page = await consoleAnswer(context, options, { path: '/v1/blocks', query })
    blocks.push(...page.items)
    isWhole &&= page.complete
    after = page.next
  }
  if (options.json) context.print(JSON.stringify(blocks))
  else if (blocks.length === 0) context.report('No caller is blocked.')
  else {
    const rows = blocks.map((one) => [
      one.until,
      one.limit,
      one.subject ?? '-',
      countedBy(one) || '-',
      one.since,
      String(one.refusals),
      one.id,
    ])
    context.print(textTable([['UNTIL', 'LIMIT', 'SUBJECT', 'COUNTED BY', 'SINCE', 'REFUSED', 'ID'], ...rows]))
  }
  if (!isWhole) context.report('There may be more: the list ended at a bound. Ask for one --limit, --subject or --ip.')
}

interface Lifted {
  readonly limit: string
  readonly lifted: boolean
  readonly forgotten: boolean
  readonly used_up: boolean
}

/** Lifts a block; with `forget` its count begins again as well. */
export async function liftBlock(
  id: string,
  options: CommonOptions & { readonly forget: boolean },
  context: CommandContext,
): Promise<void> {
  const { forget } = options
  const path = `/v1/blocks/${encodeURIComponent(id)}/lift`
  const done = await consoleAnswer<Lifted>(context, options, { method: 'POST', path, body: { forget } })
  if (options.json) return context.print(JSON.stringify(done))
  const { limit, lifted, forgotten, used_up } = done
  context.print(`${limit}: ${lifted ? 'the block is lifted' : 'there was no block any more'}`)
  if (forgotten) context.print(`${limit}: what was counted is forgotten`)
  if (used_up) {
    context.report(
      `The count of ${limit} is used up: the next request is refused, and blocks again. "weir blocks lift --forget" forgets it.`,
    )
  }
}
