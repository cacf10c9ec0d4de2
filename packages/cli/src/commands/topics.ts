import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'

/** Creates the missing topics of infra/kafka/topics.json, and reports the settings that differ from that file. */
export async function createTopics(kafka: KafkaOptions, report: (line: string) => void): Promise<void> {
  const changes = await ensureTopics(kafka, await readTopics())
  report(changes.created.length === 0 ? 'topics are there' : `topics: created ${changes.created.join(', ')}`)
  if (changes.replicationFactor === 1)
    report('Kafka has a single broker, so each record has one copy. If the broker is lost, all records are lost')
  for (const { topic, what, wanted, found } of changes.differences) {
    report(`topic ${topic}: ${what} is ${found}, but infra/kafka/topics.json has ${wanted}`)
  }
}
