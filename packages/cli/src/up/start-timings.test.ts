import { expect, test } from 'vitest'
import { StartTimings } from './start-timings.ts'

test('Timings list every step by its beginning, also one that failed and one that ran concurrently', async () => {
  const timings = new StartTimings()
  const { promise, resolve } = Promise.withResolvers<string>()
  const long = timings.measure('long', () => promise)
  const failing = timings.measure('failing', () => Promise.reject(new Error('no')))
  await expect(failing).rejects.toThrow('no')
  resolve('done')
  expect(await long).toBe('done')
  const [first, second] = timings.lines()
  expect(first).toMatch(/^ *\d+\.\d\d s \+ +\d\.\d\d s {2}long$/)
  expect(second).toMatch(/failing$/)
})
