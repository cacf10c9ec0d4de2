import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { topics } from '@weir/contracts/topics.ts'
import { createClient, type KafkaOptions } from '@weir/kafka/connect.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { partitionOf } from '@weir/kafka/partition.ts'
import { createRecordSender, type RecordToSend } from '@weir/kafka/send-records.ts'
import { parseTopics, topicsFile } from '@weir/kafka/topics-file.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { makeRecords } from './make-records.ts'

/** Values by partition and offset, as they stand in Kafka. */
export type TopicValues = readonly (readonly string[])[]

/** Below the broker's bound of 1 MB a batch, when they go to six partitions. */
const recordsPerSend = 6_000
const startMs = Date.UTC(2026, 10, 20, 12)
const perSecond = 1_000

/** A leader knows that it is one within a second, on a busy machine a few. */
const leadersDeadlineMs = 30_000

export async function createTopics(kafka: KafkaOptions): Promise<number> {
  const specs = parseTopics(await readFile(topicsFile, 'utf8'))
  await ensureTopics(kafka, specs)
  const admin = createClient(kafka).admin()
  await admin.connect()
  const isLed = () =>
    admin.fetchTopicOffsets(topics.decisions).then(
      () => true,
      () => false,
    )
  await waitUntil(isLed, { deadlineMs: leadersDeadlineMs })
  await admin.disconnect()
  return specs.find(({ name }) => name === topics.decisions)?.partitions ?? 1
}

/** Fills an empty topic with the decisions of one journal, each numbered in its partition. */
export async function fillTopic(kafka: KafkaOptions, events: number): Promise<TopicValues> {
  const partitions = await createTopics(kafka)
  const values = Array.from({ length: partitions }, (): string[] => [])
  const journal = randomUUID()
  const sender = createRecordSender(kafka)
  const records = makeRecords((number) => startMs + Math.floor((number * 1_000) / perSecond))
  try {
    for (let sent = 0; sent < events; sent += recordsPerSend) {
      const batch = Array.from({ length: Math.min(recordsPerSend, events - sent) }, (): RecordToSend => {
        const { subject, decision } = records.next().value
        const to = values[partitionOf(subject, partitions)] ?? []
        const value = `${decision},"journal":"${journal}","seq":${to.length}}`
        to.push(value)
        return { key: subject, value }
      })
      await sender.send(topics.decisions, batch)
    }
  } finally {
    await sender.close()
  }
  return values
}

/** Metering has read nothing yet: its groups are forgotten. The naive consumer takes a new one each time. */
export async function forgetGroups(kafka: KafkaOptions): Promise<void> {
  const admin = createClient(kafka).admin()
  try {
    await admin.connect()
    const { groups } = await admin.listGroups()
    const ours = groups.map(({ groupId }) => groupId).filter((groupId) => groupId.startsWith('weir-'))
    if (ours.length > 0) await admin.deleteGroups(ours)
  } finally {
    await admin.disconnect()
  }
}
