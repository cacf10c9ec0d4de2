import { expect, test } from 'vitest'
import { withTimeout } from './with-timeout.ts'

test('A promise that settles in time decides the outcome', async () => {
  expect(await withTimeout(Promise.resolve('answer'), 1_000, 'late')).toBe('answer')
  await expect(withTimeout(Promise.reject(new Error('refused')), 1_000, 'late')).rejects.toThrow('refused')
})

test('A promise that has not settled in time is replaced by the fallback, and its late rejection is dropped', async () => {
  const { promise, reject } = Promise.withResolvers<string>()
  expect(await withTimeout(promise, 0, 'late')).toBe('late')
  expect(await withTimeout(promise, -5, undefined)).toBeUndefined()
  reject(new Error('too late'))
  await new Promise(setImmediate)
})
