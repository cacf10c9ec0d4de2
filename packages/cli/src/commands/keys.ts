import type { CommandContext } from '../command-context.ts'
import { askConsole, type ConsoleAddress, requireConsole } from '../console/console-client.ts'
import { textTable } from '../text-table.ts'

interface KeyOptions {
  readonly data: string
  readonly json: boolean
}

interface KeyFacts {
  readonly id: string
  readonly subject: string
  readonly expires: string | null
}

interface MadeKey extends KeyFacts {
  readonly key: string
}

const inPath = encodeURIComponent
const given = (fields: Readonly<Record<string, string | undefined>>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

/** The key alone on standard output, so that a script can take it; what it is, beside. */
function show(made: MadeKey, { json }: KeyOptions, context: CommandContext): void {
  if (json) {
    context.print(JSON.stringify(made))
    return
  }
  const until = made.expires === null ? '' : `, until ${made.expires}`
  context.report(`key ${made.id} of ${made.subject}${until}. It is shown this once; nobody can show it again:`)
  context.print(made.key)
}

/** Makes a key for a subject. */
export async function createKey(
  subject: string,
  options: KeyOptions & { readonly id?: string; readonly expires?: string },
  context: CommandContext,
): Promise<void> {
  const address = requireConsole(context.environment, options.data)
  const path = `/v1/subjects/${inPath(subject)}/keys`
  const body = given({ id: options.id, expires: options.expires })
  const made = await askConsole<MadeKey>(address, { method: 'POST', path, body })
  show(made.body, options, context)
}

/** Makes a key in place of another, which goes on for the overlap. */
export async function rotateKey(
  id: string,
  options: KeyOptions & { readonly overlap: string; readonly newId?: string; readonly expires?: string },
  context: CommandContext,
): Promise<void> {
  const address = requireConsole(context.environment, options.data)
  const { overlap, newId, expires } = options
  const path = `/v1/keys/${inPath(id)}/rotate`
  const body = given({ overlap, id: newId, expires })
  const { body: made } = await askConsole<MadeKey & { readonly old: KeyFacts }>(address, { method: 'POST', path, body })
  if (!options.json) context.report(`key ${made.old.id} goes on until ${made.old.expires}`)
  show(made, options, context)
}

/** Ends a key at once, everywhere within a second. */
export async function revokeKey(id: string, options: KeyOptions, context: CommandContext): Promise<void> {
  const address = requireConsole(context.environment, options.data)
  await askConsole(address, { method: 'DELETE', path: `/v1/keys/${inPath(id)}` })
  if (options.json) context.print(JSON.stringify({ id, revoked: true }))
  else context.report(`key ${id} is revoked`)
}

interface KeyPage {
  readonly items: readonly KeyFacts[]
  readonly next: string | null
}

/** Every page of the list. */
async function* listedKeys(address: ConsoleAddress, subject: string | undefined): AsyncIterable<KeyFacts> {
  let after: string | null = null
  do {
    const query = new URLSearchParams({ limit: '1000', ...given({ subject, after: after ?? undefined }) })
    const { body } = await askConsole<KeyPage>(address, { path: `/v1/keys?${query}` })
    const { items, next } = body
    yield* items
    after = next
  } while (after !== null)
}

/** Keys there are, never the keys themselves. */
export async function listKeys(
  options: KeyOptions & { readonly subject?: string },
  context: CommandContext,
): Promise<void> {
  const address = requireConsole(context.environment, options.data)
  const keys: KeyFacts[] = []
  for await (const key of listedKeys(address, options.subject)) keys.push(key)
  const rows = keys.map(({ id, subject, expires }) => [id, subject, expires ?? 'never'])
  if (options.json) context.print(JSON.stringify(keys))
  else if (keys.length === 0) context.report('There are no keys.')
  else context.print(textTable([['ID', 'SUBJECT', 'EXPIRES'], ...rows]))
}
