import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { insertBlock, linesOf } from '@weir/clickhouse/insert.ts'
import { type AlertV1, parseAlert } from '@weir/contracts/alert.v1.ts'
import { parseDelivery } from '@weir/contracts/delivery.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { RecordBatch } from '@weir/kafka/consume-batches.ts'
import type { createDeadLetterSink } from '@weir/kafka/dead-letters.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { alertRow } from './alert-table.ts'

type LoggedRecord = RecordBatch['records'][number]

/** Returns the name of the silence that an alert falls under; undefined for none. */
type SilenceOf = (alert: AlertV1) => string | undefined

/** Returns the row of a record, or why there is none. */
function rowOf(
  topic: string,
  { value, headers }: LoggedRecord,
  silenceOf: SilenceOf,
): { row: object } | { reason: string } {
  if (topic === topics.alerts) {
    const read = parseAlert(value, headers)
    if (read.kind !== 'alert') return { reason: read.reason }
    return { row: alertRow(read.alert, 'raised', silenceOf(read.alert)) }
  }
  const delivery = parseDelivery(value)
  return delivery.kind === 'delivery' ? { row: delivery.delivery } : { reason: delivery.reason }
}

type DeadLetters = ReturnType<typeof createDeadLetterSink>
type DeadLetter = Parameters<DeadLetters['send']>[1][number]

/** Builds the dead letter of a record that is too large for Kafka: its position and the reason, without its value. */
const stubOf = ({ message, reason }: DeadLetter): DeadLetter => ({
  message: { position: message.position, value: null },
  reason: `${reason}; at ${message.value?.length ?? 0} bytes it is too large to store`,
})

const isRefused = (error: unknown) => error instanceof WeirError && error.code === 'KAFKA_REFUSED'

/**
 * Sends dead letters. A dead letter that Kafka refuses becomes a stub, so that no record in the topic can stop
 * alerting.
 */
async function sendDeadLetters(
  deadLetters: DeadLetters,
  partition: number,
  letters: readonly DeadLetter[],
): Promise<void> {
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
 * Returns the function that writes a batch of alerts or deliveries to ClickHouse. Safe to repeat: both tables hold each
 * row once. An alert that cannot be read, which only foreign programs write, becomes a dead letter.
 */
export function createRecordLog(options: {
  readonly client: ClickHouseClient
  readonly deadLetters: DeadLetters
  readonly silenceOf: SilenceOf
  readonly log: Logger
}): (batch: Pick<RecordBatch, 'topic' | 'partition' | 'records'>) => Promise<void> {
  const { client, deadLetters, silenceOf, log } = options
  return async function keepRecords({ topic, partition, records }) {
    const rows: object[] = []
    const letters: DeadLetter[] = []
    for (const record of records) {
      const found = rowOf(topic, record, silenceOf)
      if ('row' in found) {
        rows.push(found.row)
        continue
      }
      const { position, value, headers, offset, fault: reason = found.reason } = record
      log.error({ topic, partition, offset, why: reason }, 'record unreadable')
      letters.push({ message: { position, value }, reason, headers })
    }
    // Rows first: rows that are repeated count once, and dead letters do not.
    if (rows.length > 0) {
      const table = topic === topics.alerts ? 'alerts' : 'deliveries'
      // The time is part of the token because a topic that is created again counts its offsets from 0.
      const dedupToken = `${topic}:${partition}:${records[0]?.offset}-${records.at(-1)?.offset}:${records[0]?.timestampMs}`
      await insertBlock(client, { table, lines: linesOf(rows), dedupToken })
    }
    if (topic === topics.alerts && letters.length > 0) await sendDeadLetters(deadLetters, partition, letters)
  }
}
