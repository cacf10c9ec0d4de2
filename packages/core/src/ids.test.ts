import { expect, test } from 'vitest'
import { uuidv5, uuidv7 } from './ids.ts'

test('ids of one process ascend as text, within a millisecond, across milliseconds and when the clock steps back a little', () => {
  const times = [...Array.from({ length: 20_000 }, () => 1_700_000_000_000), 1_700_000_000_500, 1_699_999_999_000]
  const ids = times.map((ms) => uuidv7(ms))
  expect(ids).toEqual([...ids].sort())
  expect(new Set(ids).size).toBe(ids.length)
})

test('an id is a version 7 UUID that begins with its time', () => {
  const id = uuidv7(1_800_000_000_123)
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(1_800_000_000_123)
})

test('a clock that was hours ahead is followed back', () => {
  uuidv7(1_900_000_000_000)
  expect(Number.parseInt(uuidv7(1_850_000_000_000).replaceAll('-', '').slice(0, 12), 16)).toBe(1_850_000_000_000)
})

test('a name has the id that RFC 9562 gives it', () => {
  expect(uuidv5('6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'www.example.com')).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2')
})
