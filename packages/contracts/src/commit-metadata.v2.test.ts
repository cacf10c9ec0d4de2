import { expect, it } from 'vitest'
import {
  type CommitMetadata,
  encodeCommitMetadata,
  noCommitMetadata,
  parseCommitMetadata,
} from './commit-metadata.v2.ts'

const ranges = [
  { partition: 0, from: 0n, to: 99n },
  { partition: 35, from: 123_456_789_012n, to: 123_456_789_012n },
  { partition: 99, from: 7n, to: 8n },
]
const intent = { ranges, encoder: 'slow', declaredAtMs: 1_763_000_000_000, isInserted: true } as const

it('What is committed with an offset is read as it was written', () => {
  const one: CommitMetadata = { topicId: 'here', intent, isSought: false, seekOverrideUpTo: 80n }
  const text = encodeCommitMetadata(one)
  expect(text).toContain('"block":"0:0+2s,z:1kpqzg2c+1,2r:7+2"')
  expect(parseCommitMetadata(text, 0)).toEqual(one)
  const plain = {
    ...noCommitMetadata,
    topicId: 'here',
    intent: { ...intent, encoder: 'fast', isInserted: false },
  } as const
  expect(parseCommitMetadata(encodeCommitMetadata(plain), 0)).toEqual(plain)
})

it('The shard of a block is kept with it, and nothing is said of one where there is but one server', () => {
  const onShard = { ...noCommitMetadata, intent: { ...intent, shard: 's2' } }
  expect(parseCommitMetadata(encodeCommitMetadata(onShard), 0)).toEqual(onShard)
  expect(encodeCommitMetadata({ ...noCommitMetadata, intent })).not.toContain('shard')
})

it('A block of version 1 is a range of its own partition', () => {
  const text = '{"v":1,"topic":"here","from":"50","to":"59","encoder":"fast"}'
  expect(parseCommitMetadata(text, 3).intent).toEqual({
    ranges: [{ partition: 3, from: 50n, to: 59n }],
    encoder: 'fast',
    declaredAtMs: undefined,
    isInserted: false,
  })
  expect(parseCommitMetadata('{"v":1,"sought":true}', 3)).toMatchObject({ isSought: true, intent: undefined })
})

it.each(['', 'nonsense', '[]', '{"v":2,"block":7}', '{"v":2,"block":"0:1+0"}', '{"v":2,"block":"0:1+1,"}'])(
  'metadata of another program is none: %s',
  (text) => expect(parseCommitMetadata(text, 0)).toEqual(noCommitMetadata),
)

it('A list that names a partition twice, or does not begin with the partition that it is committed for, is none', () => {
  expect(parseCommitMetadata('{"v":2,"block":"0:1+1,0:2+1"}', 0).intent).toBeUndefined()
  expect(parseCommitMetadata('{"v":2,"block":"0:1+1,1:2+1"}', 1).intent).toBeUndefined()
})
