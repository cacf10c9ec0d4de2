import { expect, it } from 'vitest'
import { cutBlocks } from './block-size.ts'

const recordsOf = (lengths: readonly number[]) =>
  lengths.map((length, at) => {
    const bytes = Buffer.alloc(length)
    return { position: 100 + at, timestampMs: 0, bytes, valueStart: 0, valueEnd: length, value: bytes }
  })
const spans = (lengths: readonly number[], max: { readonly records: number; readonly bytes: number }) =>
  cutBlocks(recordsOf(lengths), max).map(({ records, intent }) => [
    records.length,
    Number(intent.from),
    Number(intent.to),
  ])

it('a block ends at its number of records or before its number of bytes is exceeded, and the next begins behind it', () => {
  expect(spans([1, 1, 1, 1, 1], { records: 2, bytes: 100 })).toEqual([
    [2, 100, 101],
    [2, 102, 103],
    [1, 104, 104],
  ])
  expect(spans([40, 60, 1], { records: 9, bytes: 100 })).toEqual([
    [2, 100, 101],
    [1, 102, 102],
  ])
})

it('a record that alone exceeds a block is a block, and no records are none', () => {
  expect(spans([1, 500, 1], { records: 9, bytes: 100 })).toEqual([
    [1, 100, 100],
    [1, 101, 101],
    [1, 102, 102],
  ])
  expect(cutBlocks([], { records: 9, bytes: 100 })).toEqual([])
})
