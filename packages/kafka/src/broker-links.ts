import { createCluster, type KafkaOptions, requestTimeoutMs } from './connect.ts'
import { missingRight } from './wire/missing-rights.ts'
import {
  type ClusterMetadata,
  metadataRequest,
  type PartitionAnswer,
  type PartitionBatch,
  produceRequest,
  type RawRequest,
  type TopicMetadata,
} from './wire/raw-requests.ts'

/** kafkajs's connection to one broker, opened at the first request. */
interface Link {
  send<Answer>(request: RawRequest<Answer>): Promise<Answer>
  setVersions(versions: object): void
  setSupportAuthenticationProtocol(isSupported: boolean): void
  destroy(): Promise<void>
}

/** kafkajs asks a broker for these before it logs in; every Kafka since 2.2 has them. */
const loginVersions = { 17: { minVersion: 0, maxVersion: 1 }, 36: { minVersion: 0, maxVersion: 1 } }

interface LinkBuilder {
  build(of?: { readonly host: string; readonly port: number }): Promise<Link>
}

/** Connections to brokers, and what is known of where partitions are. Never retries and never waits: its callers do. */
export interface BrokerLinks {
  /** Asks any broker where the topics are. Rejects when none answers. */
  learn(topics: readonly string[]): Promise<void>
  /** As last learnt: undefined for a topic that Kafka does not know. */
  topic(name: string): TopicMetadata | undefined
  /** The broker to send a partition's records to; undefined while there is none. */
  leaderOf(topic: string, partition: number): number | undefined
  /** Which right we lack by Kafka's number in an answer, else in what was last learnt of the topic. */
  missingRight(topic: string, code?: number): string | undefined
  /** One request to one broker, with acks=all. Rejects when there is no answer: then all, some or none may be stored. */
  produce(nodeId: number, batches: readonly PartitionBatch[]): Promise<PartitionAnswer[]>
  close(): void
}

/** How long a broker may wait for its replicas; the answer must be back before the connection counts as lost. */
const replicasTimeoutMs = requestTimeoutMs - 2_000

/** Connects at the first use. A connection that failed is thrown away, with whatever may still come of its requests. */
export function openBrokerLinks(options: KafkaOptions): BrokerLinks {
  const builder: LinkBuilder = Reflect.get(createCluster(options), 'connectionPoolBuilder')
  const links = new Map<string, Promise<Link>>()
  let known: ClusterMetadata = { brokers: [], topics: [] }
  const seed = 'seed'

  const drop = (name: string) => {
    const link = links.get(name)
    links.delete(name)
    void link?.then((one) => one.destroy()).catch(() => undefined) // a broken connection ends by itself
  }
  const build = async (to: { host: string; port: number } | undefined) => {
    const link = await builder.build(to)
    link.setVersions(loginVersions)
    link.setSupportAuthenticationProtocol(true)
    return link
  }
  const ask = async <Answer>(
    name: string,
    to: { host: string; port: number } | undefined,
    what: RawRequest<Answer>,
  ) => {
    const link = links.get(name) ?? build(to)
    links.set(name, link)
    try {
      return await (await link).send(what)
    } catch (error) {
      if (links.get(name) === link) drop(name)
      throw error
    }
  }
  const nameOf = ({ host, port }: { host: string; port: number }) => `${host}:${port}`

  return {
    async learn(topics) {
      const request = metadataRequest(topics)
      const connected = known.brokers.find((broker) => links.has(nameOf(broker)))
      const asked =
        connected === undefined ? undefined : await ask(nameOf(connected), connected, request).catch(() => undefined)
      known = asked ?? (await ask(seed, undefined, request)) // kafkajs takes the next address of the list each time
      if (known.brokers.some((broker) => links.has(nameOf(broker)))) drop(seed)
    },
    topic: (name) => known.topics.find((topic) => topic.name === name && topic.errorCode === 0),
    leaderOf(topic, partition) {
      const leader = this.topic(topic)?.partitions.find((one) => one.partition === partition)?.leader ?? -1
      return leader >= 0 ? leader : undefined
    },
    missingRight(name, code = known.topics.find((topic) => topic.name === name)?.errorCode ?? 0) {
      return missingRight(options, 'Produce', code, name)
    },
    async produce(nodeId, batches) {
      const broker = known.brokers.find((one) => one.nodeId === nodeId)
      if (broker === undefined) throw new Error(`broker ${nodeId} is not among those that Kafka names`)
      return ask(nameOf(broker), broker, produceRequest(batches, replicasTimeoutMs))
    },
    close() {
      for (const name of [...links.keys()]) drop(name)
    },
  }
}
