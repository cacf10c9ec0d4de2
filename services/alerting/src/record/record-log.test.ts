import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { topics } from '@weir/contracts/topics.ts'
import { WeirError } from '@weir/core/errors.ts'
import { createDeadLetterSink } from '@weir/kafka/dead-letters.ts'
import type { RecordToSend } from '@weir/kafka/send-records.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { expect, test } from 'vitest'
import { createRecordLog } from './record-log.ts'

const bytesMax = 1_000

/** A Kafka that takes no request beyond its bound, as the real one. */
function smallKafka() {
  const kept: RecordToSend[] = []
  const send = async (_: string, records: readonly RecordToSend[]) => {
    const bytes = records.reduce((sum, { value }) => sum + (value?.length ?? 0), 0)
    if (bytes > bytesMax) throw new WeirError('KAFKA_REFUSED', 'too large')
    kept.push(...records)
  }
  return { kept, sink: createDeadLetterSink({ send, close: async () => undefined }, topics.alertsDeadLetters) }
}

const recordOf = (position: number, value: Buffer) => ({
  offset: String(position),
  position,
  key: null,
  value,
  timestampMs: 1,
  bytes: value,
  headers: { from: 'another program' },
  valueStart: 0,
  valueEnd: value.length,
})

test('no record of another program stops alerting: one that is too large to be kept leaves a stub', async () => {
  const { kept, sink } = smallKafka()
  const client = connectClickhouse('http://127.0.0.1:1', 'test')
  const keep = createRecordLog({
    client,
    deadLetters: sink,
    silenceOf: () => undefined,
    log: createLogger('test', 'silent'),
  })
  const records = [Buffer.alloc(600, 'a'), Buffer.alloc(600, 'b'), Buffer.alloc(2_000, 'c')].map((value, at) =>
    recordOf(at, value),
  )
  await keep({ topic: topics.alerts, partition: 2, records })
  expect(kept.map(({ key, value }) => [key, value?.length])).toEqual([
    ['weir.alerts.v1:2:0', 600],
    ['weir.alerts.v1:2:1', 600],
    ['weir.alerts.v1:2:2', undefined],
  ])
  expect(kept[0]?.headers).toMatchObject({ from: 'another program', 'x-error-offset': '0' })
  expect(kept[2]?.headers?.['x-error-reason']).toMatch(/at 2000 bytes it is too large to store/)
  await client.close()
})
