import { expect, test } from 'vitest'
import { fingerprint, onceWhileCarried } from './admin-token.ts'

test('what a connection carries is hashed once for as long as it carries the same', () => {
  let made = 0
  const make = (text: string) => {
    made += 1
    return fingerprint(text)
  }
  const [one, other] = [{}, {}]
  const found = [
    onceWhileCarried(one, 'key', make),
    onceWhileCarried(one, 'key', make),
    onceWhileCarried(other, 'key', make),
    onceWhileCarried(one, 'another', make),
    onceWhileCarried(one, 'key', make),
  ]
  expect(found).toEqual(['key', 'key', 'key', 'another', 'key'].map(fingerprint))
  expect(made).toBe(4)
  expect(onceWhileCarried(one, 'key', () => 'made otherwise')).toBe('made otherwise')
})
