import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { parseAlert } from '@weir/contracts/alert.v1.ts'
import { parseDelivery } from '@weir/contracts/delivery.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { RecordBatch } from '@weir/kafka/consume-batches.ts'
import type { createDeadLetterSink } from '@weir/kafka/dead-letters.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { alertRow } from './alert-row.ts'
import { linesOf } from './lines.ts'

type LoggedRecord = RecordBatch['records'][number]

/** A row of its table, or why there is none. */
function rowOf(topic: string, { value, headers }: LoggedRecord): { row: object } | { reason: string } {
  if (topic === topics.alerts) {
    const alert = parseAlert(value, headers)
    return alert.kind === 'alert' ? { row: alertRow(alert.alert, 'raised') } : { reason: alert.reason }
  }
  const delivery = parseDelivery(value)
  return delivery.kind === 'delivery' ? { row: delivery.delivery } : { reason: delivery.reason }
}

/**
 * Writes a batch of alerts or of deliveries into ClickHouse: safe to repeat, for both tables hold each row once. An alert that cannot be
 * read, which only others write, is kept as a dead letter.
 */
export function createRecordLog(options: {
  readonly client: ClickHouseClient
  readonly deadLetters: ReturnType<typeof createDeadLetterSink>
  readonly log: Logger
}): (batch: Pick<RecordBatch, 'topic' | 'partition' | 'records'>) => Promise<void> {
  const { client, deadLetters, log } = options
  return async function keepRecords({ topic, partition, records }) {
    const rows: object[] = []
    const letters: Parameters<typeof deadLetters.send>[1][number][] = []
    for (const record of records) {
      const found = rowOf(topic, record)
      if ('row' in found) rows.push(found.row)
      else {
        log.error({ topic, partition, offset: record.offset, why: found.reason }, 'record unreadable')
        letters.push({ message: { position: Number(record.offset), value: record.value }, reason: found.reason })
      }
    }
    if (topic === topics.alerts) await deadLetters.send(partition, letters)
    if (rows.length === 0) return
    const table = topic === topics.alerts ? 'weir.alerts' : 'weir.deliveries'
    // The time, because a topic that is made anew counts its offsets from 0 again.
    const token = `${topic}:${partition}:${records[0]?.offset}-${records.at(-1)?.offset}:${records[0]?.timestampMs}`
    await insertBlock(client, { table, lines: linesOf(rows), token })
  }
}
