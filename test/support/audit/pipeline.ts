import { randomUUID } from 'node:crypto'
import { describePartition } from '@weir/audit/dead-letters.ts'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { type DecisionInput, encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { encodeMark, kindOf, numberOf } from '@weir/contracts/journal.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { partitionOf } from '@weir/kafka/partition.ts'
import { offsetsSince, PartitionAdmin } from '@weir/kafka/partition-admin.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { kafkaOptions } from '../servers/kafka-topics.ts'
import type { AuditStack } from './stack.ts'

const partitions = 6

/** A journal that numbers its records, and writes them to the real topic at once. */
export function openTestJournal(stack: AuditStack) {
  const id = randomUUID()
  const sender = createRecordSender(kafkaOptions(stack.kafka.address))
  const next = new Map<number, number>()
  const numbered = (key: string, open: string) => {
    const partition = partitionOf(key, partitions)
    const seq = next.get(partition) ?? 0
    next.set(partition, seq + 1)
    return { key, value: `${open},"journal":"${id}","seq":${seq}}` }
  }
  return {
    id,
    /** Also sends what `twice` says a second time, as a publisher in doubt does. */
    async publish(decisions: readonly DecisionInput[], twice: boolean = false) {
      const records = decisions.map((decision) => numbered(decision.subject, encodeDecisionOpen(decision)))
      await sender.send(topics.decisions, records)
      if (twice) await sender.send(topics.decisions, records)
    },
    /** A mark in every partition that it wrote to. */
    async mark() {
      for (const [partition, seq] of next) {
        // A key of this partition.
        const key = Array.from({ length: 1_000 }, (_, at) => `k${at}`).find(
          (one) => partitionOf(one, partitions) === partition,
        )
        await sender.send(topics.decisions, [{ key: key ?? '', value: encodeMark(Date.now(), id, seq, false) }])
      }
    },
    /** Numbers a record that is no JSON, as a fault would; gives its partition. */
    async publishPoison(subject: string) {
      const record = numbered(subject, '{"v":1,"id":nonsense')
      await sender.send(topics.decisions, [record])
      return partitionOf(subject, partitions)
    },
  }
}

/**
 * Stands in for metering: rows of every record that is one, dead letters of what is none, marks, and then the commit.
 */
export async function meterAll(stack: AuditStack): Promise<void> {
  const kafka = kafkaOptions(stack.kafka.address)
  const admin = new PartitionAdmin(kafka, 'weir-metering')
  const sender = createRecordSender(kafka)
  for (const { partition } of await offsetsSince(kafka, topics.decisions, 0)) {
    const { first, end, committed, topicId } = await describePartition(admin, topics.decisions, partition)
    const from = committed?.offset ?? first
    if (end === from) continue
    const records = await admin.readRange(topics.decisions, partition, from, end - 1n)
    const seen = new Set<string>()
    const lines: string[] = []
    for (const { offset, value } of records) {
      const text = value?.toString('utf8') ?? ''
      const number = value === null ? undefined : numberOf(value)
      if (value === null || kindOf(value) !== 'record' || number === undefined) continue
      if (text.includes('nonsense')) {
        const key = `${topics.decisions}:${partition}:${offset}`
        await sender.send(topics.decisionsDeadLetters, [{ key, value, headers: { 'x-error-reason': 'not JSON' } }])
      } else if (!seen.has(`${number.journal} ${number.seq}`)) {
        lines.push(`${text.slice(0, -1)},"topic_id":"${topicId}","partition":${partition},"offset":${offset}}\n`)
      }
      seen.add(`${number.journal} ${number.seq}`)
    }
    const block = { table: 'weir.decisions', dedupToken: randomUUID(), lines: Buffer.from(lines.join('')) }
    if (lines.length > 0) await insertBlock(stack.clickhouse, block)
    const marks = records.flatMap(({ value }) => (value !== null && kindOf(value) === 'mark' ? [value.toString()] : []))
    for (const mark of marks) {
      await stack.clickhouse.insert({
        table: 'weir.marks',
        values: [{ ...JSON.parse(mark), v: undefined, topic: topics.decisions, partition }],
        format: 'JSONEachRow',
      })
    }
    await admin.commit(topics.decisions, partition, end, '')
  }
  await sender.close()
  await admin.close()
}
