import { writeNote } from '@weir/contracts/commit-note.v1.ts'
import { describe, expect, it } from 'vitest'
import { judgeStart, type Standing } from './judge-start.ts'

const topicId = 'this-life'
const declared = { from: 50n, to: 59n, encoder: 'fast' } as const
const noteOf = (more: object = {}) => writeNote({ topicId, declared: undefined, soughtUpTo: undefined, ...more })

/** Offset 50 is committed, of a log from 0 to 100, and all before it is there. */
const judge = (standing: Partial<Standing> & { readonly metadata?: string; readonly offset?: bigint }) => {
  const { metadata = noteOf(), offset = 50n, ...more } = standing
  return judgeStart({ first: 0n, end: 100n, topicId, lastInserted: 49n, committed: { offset, metadata }, ...more })
}

const begin = (offset: bigint, more: object = {}) => ({
  ...{ kind: 'begin', offset, recover: undefined, expired: undefined, soughtUpTo: undefined },
  ...more,
})
const stop = (name: string) => ({ kind: 'stop', reason: expect.stringMatching(new RegExp(`^${name}: `)) })

describe('judgeStart', () => {
  it('begins at the log of a group that has nothing', () => {
    expect(judge({ committed: undefined, lastInserted: undefined, first: 7n })).toEqual(begin(7n))
  })

  it('goes on where it was committed', () => expect(judge({})).toEqual(begin(50n)))

  it.each([undefined, 49n, 55n, 59n])('inserts a declared block again, with rows up to %s', (lastInserted) => {
    expect(judge({ metadata: noteOf({ declared }), lastInserted })).toEqual(begin(60n, { recover: declared }))
  })

  it('reads again what ClickHouse has lost', () => {
    expect(judge({ lastInserted: 19n })).toEqual(begin(20n))
    expect(judge({ lastInserted: undefined })).toEqual(begin(0n))
  })

  it('writes down what Kafka deleted unread', () => {
    expect(judge({ first: 70n })).toEqual(begin(70n, { expired: { from: 50n, to: 69n } }))
    expect(judge({ first: 70n, lastInserted: undefined })).toEqual(begin(70n, { expired: { from: 50n, to: 69n } }))
  })

  it('of a declared block that Kafka deleted in part nothing is missing if its rows are there', () => {
    const metadata = noteOf({ declared })
    expect(judge({ metadata, first: 55n, lastInserted: 59n })).toEqual(begin(60n))
    expect(judge({ metadata, first: 55n })).toEqual(begin(55n, { expired: { from: 50n, to: 54n } }))
  })

  it('stops ahead of the log', () => {
    expect(judge({ end: 49n })).toEqual(stop('AHEAD_OF_THE_LOG'))
    expect(judge({ metadata: noteOf({ declared }), end: 55n })).toEqual(stop('AHEAD_OF_THE_LOG'))
  })

  it('stops where rows are there without a commit', () => {
    expect(judge({ lastInserted: 50n })).toEqual(stop('ROWS_WITHOUT_COMMIT'))
    expect(judge({ committed: undefined })).toEqual(stop('ROWS_WITHOUT_COMMIT'))
    expect(judge({ metadata: noteOf({ declared }), lastInserted: 60n })).toEqual(stop('ROWS_WITHOUT_COMMIT'))
  })

  it('a commit of another life of the topic is none', () => {
    const metadata = writeNote({ topicId: 'before', declared, soughtUpTo: undefined })
    expect(judge({ metadata, lastInserted: undefined })).toEqual(begin(0n))
  })

  it('goes where a person put it, and knows until all older rows are passed that they are meant', () => {
    const metadata = '{"v":1,"sought":true}'
    expect(judge({ metadata, lastInserted: 80n })).toEqual(begin(50n, { soughtUpTo: 80n }))
    expect(judge({ metadata, lastInserted: 19n })).toEqual(begin(50n))
    const within = noteOf({ declared, soughtUpTo: 80n })
    expect(judge({ metadata: within, lastInserted: 80n })).toEqual(begin(60n, { recover: declared, soughtUpTo: 80n }))
  })
})
