import type { Page } from '@weir/api/schema.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { textTable } from '../text-table.ts'
import { type ConsoleRequest, consoleAnswer } from './console-client.ts'

/** How a list is printed for people. */
export interface Listing<Item> {
  /** The heads of the columns. */
  readonly head: readonly string[]
  readonly cells: (item: Item) => readonly string[]
  /** What is said of an empty list. */
  readonly none: string
}

/** Prints a list: as JSON for programs, else as a table. */
export function printList<Item>(
  items: readonly Item[],
  { head, cells, none }: Listing<Item>,
  { json }: CommonOptions,
  { print, report }: CommandContext,
): void {
  if (json) print(JSON.stringify(items))
  else if (items.length === 0) report(none)
  else print(textTable([head, ...items.map(cells)]))
}

/** Asks for all pages of a list, one after the other, and prints it. `onPage` sees each of them. */
export async function printAll<Item, Whole extends Page<Item> = Page<Item>>(
  { path, query }: Pick<ConsoleRequest, 'path' | 'query'>,
  listing: Listing<Item>,
  options: CommonOptions,
  context: CommandContext,
  onPage: (page: Whole) => void = () => undefined,
): Promise<void> {
  const items: Item[] = []
  for (let after: string | undefined | null; after !== null; ) {
    const page: Whole = await consoleAnswer<Whole>(context, options, { path, query: { ...query, after } })
    items.push(...page.items)
    onPage(page)
    after = page.next
  }
  printList(items, listing, options, context)
}
