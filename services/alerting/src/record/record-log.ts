import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { insertBlock, linesOf } from '@weir/clickhouse/insert.ts'
import { parseAlert } from '@weir/contracts/alert.v1.ts'
import { parseDelivery } from '@weir/contracts/delivery.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { RecordBatch } from '@weir/kafka/consume-batches.ts'
import type { createDeadLetterSink } from '@weir/kafka/dead-letters.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { alertRow } from './alert-row.ts'

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

type DeadLetters = ReturnType<typeof createDeadLetterSink>
type DeadLetter = Parameters<DeadLetters['send']>[1][number]

/** Of a record that Kafka does not take back, what it takes: where it stood, and why. */
const stubOf = ({ message, reason }: DeadLetter): DeadLetter => ({
  message: { position: message.position, value: null },
  reason: `${reason}; its ${message.value?.length ?? 0} bytes are too large to be kept`,
})

const isRefused = (error: unknown) => error instanceof WeirError && error.code === 'KAFKA_REFUSED'

/** Nobody who may write to the topic can stop alerting by what he writes: a letter that Kafka refuses becomes a stub. */
async function keepLetters(deadLetters: DeadLetters, partition: number, letters: readonly DeadLetter[]): Promise<void> {
  try {
    await deadLetters.send(partition, letters)
  } catch (error) {
    if (!isRefused(error)) throw error
    for (const letter of letters) {
      await deadLetters.send(partition, [letter]).catch(async (refusal: unknown) => {
        if (!isRefused(refusal)) throw refusal
        await deadLetters.send(partition, [stubOf(letter)])
      })
    }
  }
}

/**
 * Writes a batch of alerts or of deliveries into ClickHouse: safe to repeat, for both tables hold each row once. An alert that cannot be
 * read, which only others write, is kept as a dead letter.
 */
export function createRecordLog(options: {
  readonly client: ClickHouseClient
  readonly deadLetters: DeadLetters
  readonly log: Logger
}): (batch: Pick<RecordBatch, 'topic' | 'partition' | 'records'>) => Promise<void> {
  const { client, deadLetters, log } = options

  const insert = async (
    topic: string,
    partition: number,
    records: readonly LoggedRecord[],
    rows: readonly object[],
  ) => {
    const table = topic === topics.alerts ? 'alerts' : 'deliveries'
    // The time, because a topic that is made anew counts its offsets from 0 again.
    const token = `${topic}:${partition}:${records[0]?.offset}-${records.at(-1)?.offset}:${records[0]?.timestampMs}`
    await insertBlock(client, { table, lines: linesOf(rows), dedupToken: token })
  }

  return async function keepRecords({ topic, partition, records }) {
    const rows: object[] = []
    const letters: DeadLetter[] = []
    for (const record of records) {
      const found = rowOf(topic, record)
      if ('row' in found) {
        rows.push(found.row)
        continue
      }
      const { position, value, headers, offset } = record
      log.error({ topic, partition, offset, why: found.reason }, 'record unreadable')
      letters.push({ message: { position, value }, reason: found.reason, headers })
    }
    // Rows first: repeated, they are there once, and letters are not.
    if (rows.length > 0) await insert(topic, partition, records, rows)
    if (topic === topics.alerts && letters.length > 0) await keepLetters(deadLetters, partition, letters)
  }
}
