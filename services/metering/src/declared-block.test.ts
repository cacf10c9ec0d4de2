import { encodeCommitMetadata, type InsertIntent, noCommitMetadata } from '@weir/contracts/commit-metadata.v2.ts'
import { describe, expect, it } from 'vitest'
import {
  dedupTokenOf,
  findLead,
  mayBeForgotten,
  offsetAfter,
  planRecovery,
  type RangeFacts,
  standingOf,
} from './declared-block.ts'

const topicId = 'here'
const ranges = [
  { partition: 1, from: 50n, to: 59n },
  { partition: 4, from: 7n, to: 8n },
]
const intent: InsertIntent = { ranges, encoder: 'fast', declaredAtMs: 1_000, isInserted: false }
const at = (offset: bigint, more: object = {}) => ({
  offset,
  metadata: encodeCommitMetadata({ ...noCommitMetadata, topicId, ...more }),
})
const member = { partition: 4, from: 7n, to: 8n }

describe('a block is named by its ranges', () => {
  it('The token of a block of one range is that of older versions', () => {
    expect(dedupTokenOf('T', ranges.slice(0, 1))).toBe('T:1:50-59')
  })

  it('The token of several ranges differs with each of them and with the topic', () => {
    const token = dedupTokenOf('T', ranges)
    expect(token).toMatch(/^T:[0-9a-f]{32}$/)
    const other = [...ranges.slice(0, 1), { partition: 4, from: 7n, to: 9n }]
    expect(new Set([token, dedupTokenOf('T', other), dedupTokenOf('U', ranges)]).size).toBe(3)
  })
})

describe('standingOf', () => {
  it.each([
    ['pending', at(7n)],
    ['done', at(9n)],
    ['done', at(7n, { intent: { ...intent, ranges: [member], isInserted: true } })],
    ['moved', at(7n, { intent: { ...intent, ranges: [member] } })],
    ['moved', at(3n)],
    ['moved', at(7n, { isSought: true })],
    ['moved', at(20n, { isSought: true })],
    ['moved', undefined],
  ] as const)('a member is %s at %o', (standing, committed) => {
    expect(standingOf(member, committed, 1, topicId)).toBe(standing)
  })

  it('The lead is pending although it declares the block', () => {
    expect(standingOf(ranges[0] ?? member, at(50n, { intent }), 1, topicId)).toBe('pending')
  })
})

describe('findLead', () => {
  const find = (own: ReturnType<typeof at> | undefined, lead: ReturnType<typeof at>) =>
    findLead(4, new Map([[1, lead], ...(own === undefined ? [] : [[4, own] as const])]), topicId)

  it('A partition waits for the lead that names it, until it is behind the block or the lead names it no more', () => {
    expect(find(at(7n), at(50n, { intent }))).toBe(1)
    expect(find(at(9n), at(50n, { intent }))).toBeUndefined()
    expect(find(at(7n), at(60n))).toBeUndefined()
  })

  it('A partition whose offset a person moved waits too', () => {
    expect(find(at(90n, { isSought: true }), at(50n, { intent }))).toBe(1)
  })

  it('A block of another incarnation of the topic is waited for by none', () => {
    expect(find(at(7n), at(50n, { topicId: 'before', intent }))).toBeUndefined()
  })
})

describe('what is left to do of a declared block', () => {
  const range = (more: Partial<RangeFacts> = {}): RangeFacts => ({
    partition: 4,
    from: 50n,
    to: 59n,
    standing: 'pending',
    first: 0n,
    end: 100n,
    lastInserted: 49n,
    seekOverrideUpTo: undefined,
    ...more,
  })
  const plan = (...of: RangeFacts[]) => {
    const { isFinished, rebuilt } = planRecovery(of)
    return { isFinished, rebuilt: rebuilt.length, next: of.map((one) => offsetAfter(one, { isFinished, rebuilt })) }
  }

  it('All ranges are read again and committed behind it', () => {
    expect(plan(range(), range({ lastInserted: 59n }))).toEqual({ isFinished: false, rebuilt: 2, next: [60n, 60n] })
  })

  it('A member behind the block proves that all of it is inserted', () => {
    expect(plan(range(), range({ standing: 'done' }))).toEqual({ isFinished: true, rebuilt: 0, next: [60n, undefined] })
  })

  it('A range that a person moved is left out', () => {
    expect(plan(range(), range({ standing: 'moved' }))).toEqual({
      isFinished: false,
      rebuilt: 1,
      next: [60n, undefined],
    })
  })

  it('A range of which Kafka lost a part is left out, and passed only if its rows are there', () => {
    expect(plan(range(), range({ first: 55n }))).toEqual({ isFinished: false, rebuilt: 1, next: [60n, 50n] })
    expect(plan(range(), range({ first: 55n, lastInserted: 59n })).next).toEqual([60n, 60n])
    expect(plan(range({ end: 55n })).next).toEqual([50n])
  })

  it('With rows behind the block nothing is inserted, and that partition is left to its start, which stops it', () => {
    expect(plan(range(), range({ lastInserted: 70n }))).toEqual({
      isFinished: true,
      rebuilt: 0,
      next: [60n, undefined],
    })
  })

  it('Rows behind the block of a partition that a person moved back prove nothing', () => {
    const moved = range({ lastInserted: 70n, seekOverrideUpTo: 70n })
    expect(plan(moved)).toEqual({ isFinished: false, rebuilt: 1, next: [60n] })
  })
})

it('A block of ten minutes ago, or of a version that named no time, may be forgotten by ClickHouse', () => {
  expect(mayBeForgotten(intent, 500_000)).toBe(false)
  expect(mayBeForgotten(intent, 700_000)).toBe(true)
  expect(mayBeForgotten({ ...intent, declaredAtMs: undefined }, 1_763_000_000_000)).toBe(true)
})
