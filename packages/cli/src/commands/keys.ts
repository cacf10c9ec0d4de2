import type { Key, MadeKey } from '@weir/api/access.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { consoleAnswer } from '../console/console-client.ts'
import { type Listing, printAll } from '../console/listing.ts'
import { momentCell } from '../terminal/cells.ts'

const inPath = encodeURIComponent

/** Prints the key alone on standard output, so that a script can take it, and reports what it is. */
function show(made: MadeKey, { json }: CommonOptions, context: CommandContext): void {
  const until = made.expires === null ? '' : `, until ${momentCell(made.expires)}`
  const what = `key ${made.id} of ${made.subject}${until}. It is shown this once; nobody can show it again:`
  if (!json) context.report(what)
  context.print(json ? JSON.stringify(made) : made.key)
}

/** Makes a key for a subject. */
export async function createKey(
  subject: string,
  options: CommonOptions & { readonly id?: string; readonly expires?: string },
  context: CommandContext,
): Promise<void> {
  const { id, expires } = options
  const request = { method: 'POST', path: `/v1/subjects/${inPath(subject)}/keys`, body: { id, expires } } as const
  show(await consoleAnswer<MadeKey>(context, options, request), options, context)
}

/** Makes a key that replaces another, which stays valid for the overlap. */
export async function rotateKey(
  id: string,
  options: CommonOptions & { readonly overlap: string; readonly newId?: string; readonly expires?: string },
  context: CommandContext,
): Promise<void> {
  const { overlap, newId, expires } = options
  const body = { overlap, id: newId, expires }
  const request = { method: 'POST', path: `/v1/keys/${inPath(id)}/rotate`, body } as const
  const made = await consoleAnswer<MadeKey & { readonly old: Key }>(context, options, request)
  if (!options.json) context.report(`key ${made.old.id} is valid until ${momentCell(made.old.expires)}`)
  show(made, options, context)
}

/** Revokes a key: every process rejects it within a second. */
export async function revokeKey(id: string, options: CommonOptions, context: CommandContext): Promise<void> {
  await consoleAnswer(context, options, { method: 'DELETE', path: `/v1/keys/${inPath(id)}` })
  if (options.json) context.print(JSON.stringify({ id, revoked: true }))
  else context.report(`key ${id} is revoked`)
}

const listing: Listing<Key> = {
  head: ['ID', 'KEY', 'SUBJECT', 'CREATED', 'EXPIRES'],
  cells: ({ id, prefix, subject, created, expires }) => [
    id,
    prefix === null ? '-' : `${prefix}…`,
    subject,
    momentCell(created),
    momentCell(expires, 'never'),
  ],
  none: 'There are no keys.',
}

/** Lists the keys there are, never the secrets themselves. */
export async function listKeys(
  options: CommonOptions & { readonly subject?: string },
  context: CommandContext,
): Promise<void> {
  const query = { limit: 1_000, subject: options.subject }
  await printAll({ path: '/v1/keys', query }, listing, options, context)
}
