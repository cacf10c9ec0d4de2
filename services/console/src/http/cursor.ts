import { createHash } from 'node:crypto'
import { formParameters } from '@weir/api/query/answer-form.ts'
import { parseJson } from '@weir/contracts/fields.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { canonicalJson, type JsonValue } from '@weir/policy/entities.ts'
import { problem } from '@weir/runtime/problem.ts'

/** What a cursor belongs to: another question or another reader cannot use it. */
export interface CursorOwner {
  readonly path: string
  /** The query as it was given; `after`, `limit` and how the answer is written do not count. */
  readonly given: Readonly<Record<string, string | readonly string[] | undefined>>
  /** Name of the caller's credential, and what it reaches. */
  readonly by: string
  readonly reach: Reach
}

/** Where a page begins. */
export interface CursorPosition {
  /** When the first page was asked: `now` and what is counted from it are the same on every page. */
  readonly atMs: number
  /** The last row of the page before, by what rows are sorted by. */
  readonly position: readonly string[]
}

const [hashBytes, partsMax] = [16, 8]
/** The last instant of the year 9999: later ones no server here can write. */
const lastMs = 253_402_300_799_999
const notOfTheQuestion: readonly string[] = formParameters

/** The cursor's own problem: it was made up, damaged, or made for another question or reader. */
export const cursorInvalid = problem(
  'cursor-invalid',
  'Bad request',
  400,
  '`after` is not a cursor of this question and this reader. Ask without it for the first page.',
)

/** Returns the same text for the same question of the same reader, whatever page of it is asked for. */
export function ownerHash({ path, given, by, reach }: CursorOwner): string {
  const asked = Object.entries(given).filter(([name]) => !notOfTheQuestion.includes(name))
  const owner = canonicalJson({
    path,
    by,
    reach: reach.subjects ?? null,
    asked: Object.fromEntries(asked),
  } as JsonValue)
  return createHash('sha256').update(owner).digest().subarray(0, hashBytes).toString('base64url')
}

/** Writes the cursor of the page after a row. It is opaque to readers, and opens nothing that its question does not. */
export const writeCursor = (owner: CursorOwner, { atMs, position }: CursorPosition): string =>
  Buffer.from(JSON.stringify([ownerHash(owner), atMs, ...position])).toString('base64url')

/** Reads a cursor. Undefined unless it was written for the same question and reader. */
export function readCursor(text: string, owner: CursorOwner): CursorPosition | undefined {
  const read = parseJson(Buffer.from(text, 'base64url').toString())
  if (!Array.isArray(read) || read.length > partsMax || read[0] !== ownerHash(owner)) return undefined
  const [, atMs, ...position] = read
  if (!Number.isSafeInteger(atMs) || atMs < 0 || atMs > lastMs || !position.every((part) => typeof part === 'string'))
    return undefined
  return { atMs, position }
}

/** The value of the header `Link` for the page that `next` begins: the same address with another `after`. */
export function linkOf(path: string, url: string, next: string): string {
  const query = new URLSearchParams(url.split('?').slice(1).join('?'))
  query.set('after', next)
  return `<${path}?${query}>; rel="next"`
}
