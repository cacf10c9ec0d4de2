import { Reach } from '@weir/core/usage/reach.ts'
import { expect, it } from 'vitest'
import { type CursorOwner, linkOf, readCursor, writeCursor } from './cursor.ts'

const owner: CursorOwner = {
  path: '/v1/usage',
  by: 'ci',
  reach: Reach.of(['acme']),
  given: { by: 'route', plan: ['free', 'top'] },
}
const written = writeCursor(owner, { atMs: 1_700_000_000_000, position: ['1', 'größe'] })

it('A cursor is read by the reader who asks the same question, in another order and for another page too', () => {
  const again = { ...owner, given: { limit: '5', plan: ['free', 'top'], by: 'route', after: written, numbers: 'text' } }
  expect(readCursor(written, again)).toEqual({ atMs: 1_700_000_000_000, position: ['1', 'größe'] })
})

it.each<[string, Partial<CursorOwner>]>([
  ['another question', { given: { by: 'route', plan: ['free'] } }],
  ['a question with one filter more', { given: { ...owner.given, subject: 'acme' } }],
  ['another path', { path: '/v1/outcomes' }],
  ['another reader', { by: 'cd' }],
  ['a reader of another subject', { reach: Reach.of(['bolt']) }],
  ['a reader of everything', { reach: Reach.everybody }],
])('A cursor is none for %s', (_, other) => expect(readCursor(written, { ...owner, ...other })).toBeUndefined())

const forged = (...parts: unknown[]) => Buffer.from(JSON.stringify(parts)).toString('base64url')
const hash = JSON.parse(Buffer.from(written, 'base64url').toString())[0]
it.each([
  '',
  'null',
  'x',
  forged(),
  forged('hash', 1, 'a'),
  forged(hash, -1, 'a'),
  forged(hash, 9e15, 'a'),
  forged(hash, 'now', 'a'),
  forged(hash, 1, 2),
])('The forged cursor %s is none', (text) => expect(readCursor(text, owner)).toBeUndefined())

it('The link to the next page keeps a question that has question marks', () => {
  const link = linkOf('/v1/usage', '/v1/usage?not_route=a?b&from=now-2h', 'next')
  expect(link).toBe('</v1/usage?not_route=a%3Fb&from=now-2h&after=next>; rel="next"')
})
