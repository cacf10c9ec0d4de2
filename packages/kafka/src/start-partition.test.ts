import { WeirError } from '@weir/core/errors.ts'
import { describe, expect, it } from 'vitest'
import { type Start, startPartition } from './start-partition.ts'

const place = { topic: 'weir.decisions.v1', partition: 3 }
const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

function start(onAssigned: () => Promise<Start>) {
  const read: string[] = []
  const consumer = {
    seek: ({ offset }: { offset: string }) => void read.push(`from ${offset}`),
    resume: () => void read.push('resumed'),
  }
  const admin = {
    describe: () => Promise.reject(new Error('not asked here')),
    committed: async () => new Map(),
    readRange: async () => [],
  }
  const commit = async () => undefined
  const reason = startPartition(place, { consumer, admin, commit, onAssigned, isFenced: () => false, log })
  return { reason, read }
}

describe('a partition at its start', () => {
  it('A partition is read from where its handler says', async () => {
    const { reason, read } = start(async () => ({ kind: 'from', offset: 7n }))
    expect(await reason).toBeUndefined()
    expect(read).toEqual(['from 7', 'resumed'])
  })

  it('A partition whose write intent is refused is not read; the others of the process are', async () => {
    const { reason, read } = start(() => Promise.reject(new WeirError('PARTITION_STOPPED', 'ROWS_REFUSED: too long')))
    expect(await reason).toBe('ROWS_REFUSED: too long')
    expect(read).toEqual([])
  })

  it('A fault that no repetition fixes ends the consumer', async () => {
    const { reason } = start(() => Promise.reject(new TypeError('a fault of ours')))
    await expect(reason).rejects.toThrow('a fault of ours')
  })
})
