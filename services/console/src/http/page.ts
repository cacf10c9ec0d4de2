import type { Entity, EntityKind } from '@weir/policy/entities.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type CursorOwner, linkOf, readCursor, writeCursor } from './cursor.ts'

/**
 * Makes a page of rows of which one more was read than the page may have; `nextOf` gives `next` by the page's last row.
 */
export function pageOf<T>(found: readonly T[], limit: number, nextOf: (last: T) => string) {
  const items = found.slice(0, limit)
  const last = items.at(-1)
  return { items, next: found.length > limit && last !== undefined ? nextOf(last) : null }
}

/** Makes a page of the entities of a kind, by name. */
export const pageOfEntities = <T>(
  state: PolicyState,
  kind: EntityKind,
  { after = '', limit }: { readonly after?: string; readonly limit: number },
  shown: (entity: Entity) => T & { readonly name: string },
) => pageOf(state.page(kind, after, limit + 1).map(shown), limit, ({ name }) => name)

/**
 * The pages of one question of one reader, from where its `after` says. `path` is that of the question, and `nowMs` is
 * when its first page is asked.
 */
export function openPages(
  { by, reach, url, method }: FastifyRequest,
  path: string,
  given: CursorOwner['given'],
  nowMs: number,
) {
  const owner: CursorOwner = { path, given, by, reach }
  const cursor = typeof given.after === 'string' ? readCursor(given.after, owner) : undefined
  const { atMs = nowMs, position: after } = cursor ?? {}
  return {
    owner,
    /** When the first page was asked. */
    atMs,
    /** The last row of the page before; undefined for the first page. */
    after,
    /** Whether `after` is no cursor of this question. */
    isAstray: (isPosition: (position: readonly string[]) => boolean = () => true): boolean =>
      given.after !== undefined && !(after !== undefined && isPosition(after)),
    /** Takes a page of the rows, of which one more was read, and names the next one in the header `Link`. */
    cut<Row>(reply: FastifyReply, found: readonly Row[], limit: number, positionOf: (last: Row) => readonly string[]) {
      const nextOf = (last: Row) => writeCursor(owner, { atMs, position: positionOf(last) })
      const { items: rows, next } = pageOf(found, limit, nextOf)
      if (next !== null && method !== 'POST') reply.header('link', linkOf(path, url, next))
      return { rows, next }
    },
  }
}
