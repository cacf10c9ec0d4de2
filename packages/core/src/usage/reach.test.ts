import { expect, it } from 'vitest'
import { Reach } from './reach.ts'

it('of everybody covers every subject, one of subjects those alone, and one of nobody none', () => {
  expect(Reach.everybody.covers(['acme', 'bolt'])).toBe(true)
  const two = Reach.of(['acme', 'bolt'])
  expect([two.covers(['acme']), two.covers(['acme', 'bolt']), two.covers(['acme', 'cargo'])]).toEqual([
    true,
    true,
    false,
  ])
  expect(Reach.of([]).covers(['acme'])).toBe(false)
  expect([Reach.everybody.isOwn, two.isOwn, Reach.of([]).isOwn]).toEqual([false, true, true])
})

it('covers a subject by its exact id', () => {
  const own = Reach.of(['acme'])
  for (const other of ['ACME', 'acme ', 'acme\0', 'аcme', 'acme,bolt', '', 'acm'])
    expect(own.covers([other])).toBe(false)
})
