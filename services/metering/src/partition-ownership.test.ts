import { WeirError } from '@weir/core/errors.ts'
import { expect, test } from 'vitest'
import { type PartitionOwnership, retryWhileOwned } from './partition-ownership.ts'

const ownership = (isFenced: () => boolean): PartitionOwnership => ({
  heartbeat: async () => undefined,
  commit: async () => undefined,
  isFenced,
})

const options = { heartbeatIntervalMs: 1_000, pause: async () => undefined }

test('A call to ClickHouse that fails after its partition was reassigned gives up this partition, and no other', async () => {
  const refused = new Error('connect ECONNREFUSED')
  let attempts = 0
  const attempt = async () => {
    attempts += 1
    throw refused
  }
  const retried = retryWhileOwned(
    ownership(() => attempts === 2),
    options,
    attempt,
    () => undefined,
  )
  await expect(retried).rejects.toMatchObject({ code: 'PARTITION_LOST', cause: refused })
  expect(attempts).toBe(2)
})

test('An error that says itself how the partition was lost is passed on as it is', async () => {
  const lost = new WeirError('PARTITION_LOST', 'the group has moved on')
  const attempt = () => Promise.reject(lost)
  const retried = retryWhileOwned(
    ownership(() => true),
    options,
    attempt,
    () => undefined,
  )
  await expect(retried).rejects.toBe(lost)
})
