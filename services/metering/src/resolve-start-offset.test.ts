import { encodeCommitMetadata, noCommitMetadata } from '@weir/contracts/commit-metadata.v2.ts'
import { describe, expect, it } from 'vitest'
import { type OffsetFacts, resolveStartOffset } from './resolve-start-offset.ts'

const topicId = 'this-incarnation'
const metadataOf = (more: object = {}) => encodeCommitMetadata({ ...noCommitMetadata, topicId, ...more })

/** Offset 50 is committed, of a log from 0 to 100, and all before it is there. */
const resolve = (facts: Partial<OffsetFacts> & { readonly metadata?: string; readonly offset?: bigint }) => {
  const { metadata = metadataOf(), offset = 50n, ...more } = facts
  return resolveStartOffset({
    partition: 0,
    first: 0n,
    end: 100n,
    topicId,
    lastInserted: 49n,
    committed: { offset, metadata },
    ...more,
  })
}

const begin = (offset: bigint, more: object = {}) => ({
  kind: 'begin',
  offset,
  expired: undefined,
  seekOverrideUpTo: undefined,
  ...more,
})
const stop = (name: string) => ({ kind: 'stop', reason: expect.stringMatching(new RegExp(`^${name}: `)) })

describe('resolveStartOffset', () => {
  it('a group without commits begins at the start of the log', () => {
    expect(resolve({ committed: undefined, lastInserted: undefined, first: 7n })).toEqual(begin(7n))
  })

  it('a partition goes on at its committed offset', () => expect(resolve({})).toEqual(begin(50n)))

  it('rows that ClickHouse lost are read again', () => {
    expect(resolve({ lastInserted: 19n })).toEqual(begin(20n))
    expect(resolve({ lastInserted: undefined })).toEqual(begin(0n))
  })

  it('offsets that Kafka deleted unread are reported as expired', () => {
    expect(resolve({ first: 70n })).toEqual(begin(70n, { expired: { from: 50n, to: 69n } }))
    expect(resolve({ first: 70n, lastInserted: undefined })).toEqual(begin(70n, { expired: { from: 50n, to: 69n } }))
  })

  it('a commit beyond the end of the log stops the partition', () => {
    expect(resolve({ end: 49n })).toEqual(stop('AHEAD_OF_THE_LOG'))
  })

  it('rows without a commit stop the partition', () => {
    expect(resolve({ lastInserted: 50n })).toEqual(stop('ROWS_WITHOUT_COMMIT'))
    expect(resolve({ committed: undefined })).toEqual(stop('ROWS_WITHOUT_COMMIT'))
  })

  it('a commit of another incarnation of the topic does not count', () => {
    const metadata = metadataOf({ topicId: 'before' })
    expect(resolve({ metadata, lastInserted: undefined })).toEqual(begin(0n))
    expect(resolve({ metadata, lastInserted: undefined, offset: 150n })).toEqual(begin(0n))
  })

  it('an offset that a person moved is read from there, and rows without a commit stop nothing until all are passed', () => {
    const metadata = '{"v":1,"sought":true}'
    expect(resolve({ metadata, lastInserted: 80n })).toEqual(begin(50n, { seekOverrideUpTo: 80n }))
    expect(resolve({ metadata, lastInserted: 19n })).toEqual(begin(50n))
    expect(resolve({ metadata: metadataOf({ seekOverrideUpTo: 80n }), lastInserted: 80n })).toEqual(
      begin(50n, { seekOverrideUpTo: 80n }),
    )
  })
})
