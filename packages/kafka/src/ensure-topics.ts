import { WeirError } from '@weir/core/errors.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { Admin } from 'kafkajs'
import { createClient, type KafkaOptions } from './connect.ts'
import { isDenied, isTransient, kafkaFault } from './kafka-errors.ts'
import type { TopicSpec } from './topics-file.ts'
import { kafkajs } from './wire/kafkajs-fixes.ts'

/** Something about an existing topic that is not as topics.json says. Nothing is changed by itself. */
export interface TopicDifference {
  readonly topic: string
  /** `partitions`, `replication factor`, or the name of a Kafka setting. */
  readonly what: string
  readonly wanted: string
  readonly found: string
}

/** What was done about the topics. */
export interface TopicsReport {
  readonly created: readonly string[]
  readonly differences: readonly TopicDifference[]
  /** How many copies of a new topic there can be; below topics.json where there are fewer brokers. */
  readonly replicationFactor: number
}

/** What the topic's settings are on so many brokers. */
function wantedConfig(spec: TopicSpec, brokers: number): Record<string, string> {
  const copies = Math.min(spec.replicationFactor, brokers)
  return { ...spec.config, 'min.insync.replicas': String(Math.min(spec.minInsyncReplicas, copies)) }
}

/** A new topic has its leaders within a second; a busy broker may take a few. */
const leadersDeadlineMs = 15_000

async function create(admin: Admin, specs: readonly TopicSpec[], brokers: number): Promise<void> {
  await admin.createTopics({
    // Waited for below: kafkajs gives up immediately where a broker does not know the topic yet.
    waitForLeaders: false,
    topics: specs.map((spec) => ({
      topic: spec.name,
      numPartitions: spec.partitions,
      replicationFactor: Math.min(spec.replicationFactor, brokers),
      configEntries: Object.entries(wantedConfig(spec, brokers)).map(([name, value]) => ({ name, value })),
    })),
  })
}

/**
 * Whether every partition can be written to: its leader is known, and knows it too. A broker that does not know a
 * topic that was just created says so, and learns of it.
 */
async function haveLeaders(admin: Admin, specs: readonly TopicSpec[]): Promise<boolean> {
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: specs.map((spec) => spec.name) })
    const isLed = topics.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0))
    if (isLed) await Promise.all(specs.map(({ name }) => admin.fetchTopicOffsets(name)))
    return isLed
  } catch (error) {
    if (isTransient(error) && !isDenied(error)) return false
    throw error
  }
}

/** Copies are compared with the brokers that live: fewer than those are a broker that the topic does not use. */
async function partitionDifferences(
  admin: Admin,
  specs: readonly TopicSpec[],
  brokers: number,
): Promise<TopicDifference[]> {
  const { topics } = await admin.fetchTopicMetadata({ topics: specs.map((spec) => spec.name) })
  const found = new Map(topics.map((topic) => [topic.name, topic.partitions]))
  return specs.flatMap(({ name: topic, partitions, replicationFactor }) => {
    const own = found.get(topic) ?? []
    const [copies, wanted] = [Math.min(...own.map((one) => one.replicas.length)), Math.min(replicationFactor, brokers)]
    const count = { topic, what: 'partitions', wanted: String(partitions), found: String(own.length) }
    const factor = { topic, what: 'replication factor', wanted: String(wanted), found: String(copies) }
    return [...(own.length === partitions ? [] : [count]), ...(copies < wanted ? [factor] : [])]
  })
}

async function configDifferences(admin: Admin, specs: readonly TopicSpec[], brokers: number) {
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: specs.map(({ name }) => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name })),
  })
  const found = new Map(
    resources.map((one) => [one.resourceName, new Map(one.configEntries.map((e) => [e.configName, e.configValue]))]),
  )
  return specs.flatMap((spec) =>
    Object.entries(wantedConfig(spec, brokers))
      .map(([what, wanted]) => ({ topic: spec.name, what, wanted, found: String(found.get(spec.name)?.get(what)) }))
      .filter((one) => one.wanted !== one.found),
  )
}

/**
 * Creates the topics that are missing, with explicit partitions and settings, and compares the others with what they
 * should be. Safe to run by several processes concurrently, and at every start.
 */
export async function ensureTopics(options: KafkaOptions, specs: readonly TopicSpec[]): Promise<TopicsReport> {
  const admin = createClient(options).admin()
  try {
    await admin.connect()
    const { brokers } = await admin.describeCluster()
    const existing = new Set(await admin.listTopics())
    const missing = specs.filter((spec) => !existing.has(spec.name))
    const present = specs.filter((spec) => existing.has(spec.name))
    if (missing.length > 0) await create(admin, missing, brokers.length)
    const isReady = () => missing.length === 0 || haveLeaders(admin, missing)
    if (!(await waitUntil(isReady, { deadlineMs: leadersDeadlineMs }))) {
      const names = missing.map(({ name }) => name).join(', ')
      const what = `${names} had no leaders ${leadersDeadlineMs / 1_000} s after they were created`
      throw new WeirError('KAFKA_UNAVAILABLE', `${what}; check that all brokers are up, and try again`)
    }
    const differences =
      present.length === 0
        ? []
        : [
            ...(await partitionDifferences(admin, present, brokers.length)),
            ...(await configDifferences(admin, present, brokers.length)),
          ]
    const copiesMax = Math.max(...specs.map((spec) => spec.replicationFactor))
    return {
      created: missing.map((spec) => spec.name),
      differences,
      replicationFactor: Math.min(copiesMax, brokers.length),
    }
  } catch (error) {
    throw kafkaFault(`creating topics at ${options.brokers.join(',')}`, error)
  } finally {
    await admin.disconnect()
  }
}
