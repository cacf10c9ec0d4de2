import { expect, it } from 'vitest'
import { type Fetched, packRound } from './pack-round.ts'

const limits = { records: 6, bytes: 100, ranges: 3, lanes: 3 }

function fetched(partition: number, lengths: readonly number[], isAlone = false): Fetched<string> {
  const records = lengths.map((length, at) => {
    const bytes = Buffer.alloc(length)
    return { position: 100 + at, timestampMs: 0, bytes, valueStart: 0, valueEnd: length, value: bytes }
  })
  return { owner: `owner ${partition}`, partition, from: 98n, records, isAlone }
}

/** Blocks as texts: a partition, and its first and last offset. */
const pack = (of: readonly Fetched<string>[], more: Partial<typeof limits> = {}) =>
  packRound(of, { ...limits, ...more }).map((lane) =>
    lane.map((block) => block.map(({ range: { partition, from, to } }) => `${partition}:${from}-${to}`).join(' ')),
  )

it('All partitions of a small round share one block, in their order, each from where it is committed', () => {
  expect(pack([fetched(2, [1, 1]), fetched(0, [1]), fetched(1, [1])], { lanes: 1 })).toEqual([
    ['0:98-100 1:98-100 2:98-101'],
  ])
  expect(packRound([], limits)).toEqual([])
})

it('A block ends at its number of records, and what is left of the partition begins the next', () => {
  const lanes = pack([fetched(0, [1, 1, 1, 1]), fetched(1, [1, 1, 1, 1, 1])], { lanes: 1 })
  expect(lanes).toEqual([['0:98-103 1:98-101', '1:102-104']])
})

it('A block ends before its number of bytes is exceeded, and a record that alone exceeds it is a block', () => {
  expect(pack([fetched(0, [40, 60, 1])])).toEqual([['0:98-101', '0:102-102']])
  expect(pack([fetched(0, [1, 500, 1])])).toEqual([['0:98-100', '0:101-101', '0:102-102']])
})

it('A block names no more partitions than its metadata has space for', () => {
  expect(
    pack(
      [0, 1, 2, 3].map((partition) => fetched(partition, [1])),
      { lanes: 1 },
    ),
  ).toEqual([['0:98-100 1:98-100 2:98-100', '3:98-100']])
})

it('A backlog fills lanes, and partitions with little share the lane that has least', () => {
  const long = [1, 1, 1, 1, 1, 1]
  expect(pack([fetched(0, long), fetched(1, [1]), fetched(2, long), fetched(3, [1])])).toEqual([
    ['0:98-105'],
    ['2:98-105'],
    ['1:98-100 3:98-100'],
  ])
})

it('A partition whose offset a person moved shares no block', () => {
  const of = [fetched(0, [1]), fetched(1, [1], true), fetched(2, [1])]
  expect(pack(of)).toEqual([['0:98-100', '1:98-100', '2:98-100']])
})
