import type { Block, BlockPage, LiftedBlock } from '@weir/api/limits.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { consoleAnswer } from '../console/console-client.ts'
import { type Listing, printAll } from '../console/listing.ts'
import { countCell, momentCell } from '../terminal/cells.ts'

const countedBy = ({ scope }: Block) =>
  Object.entries(scope)
    .map(([part, value]) => `${part}=${value}`)
    .join(' ')

const listing: Listing<Block> = {
  head: ['UNTIL', 'LIMIT', 'SUBJECT', 'COUNTED BY', 'SINCE', 'REFUSED', 'ID'],
  cells: (one) => [
    momentCell(one.until),
    one.limit ?? (one.exempt === true ? 'exempt' : 'by hand'),
    one.subject ?? '-',
    countedBy(one) || one.ip || one.key_id || '-',
    momentCell(one.since),
    countCell(one.refusals ?? null),
    one.id,
  ],
  none: 'No caller is blocked.',
}

/** Lists which callers are blocked now, those that were blocked last first. */
export async function listBlocks(
  options: CommonOptions & { readonly limit?: string; readonly subject?: string; readonly ip?: string },
  context: CommandContext,
): Promise<void> {
  const { limit, subject, ip } = options
  let isWhole = true
  const request = { path: '/v1/blocks', query: { limit, subject, ip } }
  await printAll<Block, BlockPage>(request, listing, options, context, ({ complete }) => {
    isWhole &&= complete
  })
  if (!isWhole) context.report('There may be more blocks. Narrow the list with --limit, --subject or --ip.')
}

interface BlockOptions {
  readonly subject?: string
  readonly key?: string
  readonly ip?: string
  readonly exempt: boolean
  readonly for: string
  readonly reason?: string
}

/** Blocks a caller by hand, or exempts an address, and prints the block's id. */
export async function addBlock(options: CommonOptions & BlockOptions, context: CommandContext): Promise<void> {
  const { subject, key: key_id, ip, exempt, for: length, reason } = options
  const body = { subject, key_id, ip, exempt, for: length, reason }
  const made = await consoleAnswer<Block>(context, options, { method: 'POST', path: '/v1/blocks', body })
  if (options.json) return context.print(JSON.stringify(made))
  const who = made.subject ?? made.ip ?? made.key_id ?? ''
  context.report(
    `${who} is ${made.exempt === true ? 'exempt' : 'blocked'} until ${momentCell(made.until)}. Undo: weir blocks lift ${made.id}`,
  )
  context.print(made.id)
}

/** Lifts a block; with `forget` its count begins again as well. */
export async function liftBlock(
  id: string,
  options: CommonOptions & { readonly forget: boolean },
  context: CommandContext,
): Promise<void> {
  const { forget } = options
  const path = `/v1/blocks/${encodeURIComponent(id)}/lift`
  const done = await consoleAnswer<LiftedBlock>(context, options, { method: 'POST', path, body: { forget } })
  if (options.json) return context.print(JSON.stringify(done))
  const { lifted, forgotten, used_up } = done
  const limit = done.limit ?? 'by hand'
  context.print(`${limit}: ${lifted ? 'block lifted' : 'no block'}`)
  if (forgotten) context.print(`${limit}: counts reset`)
  if (used_up) {
    context.report(
      `The count of ${limit} is used up: the next request is refused, and blocks again. "weir blocks lift --forget" forgets it.`,
    )
  }
}
