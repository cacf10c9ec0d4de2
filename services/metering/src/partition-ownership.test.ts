import { once } from 'node:events'
import { WeirError } from '@weir/core/errors.ts'
import { expect, test } from 'vitest'
import { type PartitionOwnership, retryWhileOwned, withHeartbeats } from './partition-ownership.ts'

const ownership = (isFenced: () => boolean): PartitionOwnership => ({
  heartbeat: async () => undefined,
  commitAll: async () => undefined,
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

test('A partition that a heartbeat found lost is given up with the error of Kafka, and nothing is retried', async () => {
  const lost = new WeirError('PARTITION_LOST', 'the group has moved on')
  const pauses: number[] = []
  const pause = async (ms: number) => void pauses.push(ms)
  // The heartbeat has learned of the new assignment, which this process has not joined yet.
  const attempt = () => Promise.reject(lost)
  const retried = retryWhileOwned(
    ownership(() => false),
    { ...options, pause, heartbeatIntervalMs: 10_000 },
    attempt,
    () => pauses.length > 2 && expect.fail('it is retried'),
  )
  await expect(retried).rejects.toBe(lost)
  expect(pauses).toEqual([])
})

test('A call to ClickHouse that ends because the process stops is neither reported as failed nor repeated', async () => {
  const stop = new AbortController()
  const pause = async () => stop.signal.throwIfAborted()
  const attempt = () => {
    stop.abort(new Error('the process stops'))
    return withHeartbeats(
      ownership(() => false),
      { ...options, pause },
      (signal) => once(signal, 'abort').then(() => Promise.reject(signal.reason)),
    )
  }
  const retried = retryWhileOwned(
    ownership(() => false),
    { ...options, pause },
    attempt,
    () => expect.fail('it is reported'),
  )
  await expect(retried).rejects.toThrow('the process stops')
})

test('A heartbeat that finds the partition lost aborts the call to ClickHouse; one that Kafka does not answer does not', async () => {
  const lost = new WeirError('PARTITION_LOST', 'the group has moved on')
  const heartbeats = [new WeirError('KAFKA_UNAVAILABLE', 'no answer'), undefined, lost]
  const pause = async () => {
    if (heartbeats.length === 0) throw new Error('the call goes on')
  }
  const aborted = Promise.withResolvers<unknown>()
  const calling = withHeartbeats(
    {
      ...ownership(() => false),
      heartbeat: async () => {
        const fault = heartbeats.shift()
        if (fault !== undefined) throw fault
      },
    },
    { ...options, pause },
    (signal) => once(signal, 'abort').then(() => aborted.resolve(signal.reason)),
  )
  await expect(calling).rejects.toBe(lost)
  expect(await aborted.promise).toBe(lost)
  expect(heartbeats).toEqual([])
})
