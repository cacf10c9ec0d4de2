import { createCluster, type KafkaOptions, requestTimeoutMs } from './connect.ts'
import { missingRight } from './wire/missing-rights.ts'
import {
  answerCodes,
  type ClusterMetadata,
  metadataRequest,
  type PartitionAnswer,
  type PartitionBatch,
  produceRequest,
  type RawRequest,
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

interface Address {
  readonly host: string
  readonly port: number
}

const nameOf = ({ host, port }: Address) => `${host}:${port}`

/** How long a broker may wait for its replicas; the answer must be back before the connection counts as lost. */
const replicasTimeoutMs = requestTimeoutMs - 2_000

/** Kafka's numbers for a batch that holds a record which it will never store. */
const rejections: ReadonlySet<number> = new Set([
  answerCodes.messageTooLarge,
  answerCodes.recordListTooLarge,
  answerCodes.invalidRecord,
])

/** The outcome of one batch; its reason is empty for a stored one. */
function resultOf({ topic, partition, errorCode }: PartitionAnswer, right: string | undefined) {
  if (errorCode === answerCodes.none) return { topic, partition, outcome: 'stored', reason: '' } as const
  const outcome = rejections.has(errorCode) ? 'rejected' : 'failed'
  return { topic, partition, outcome, reason: right ?? `Kafka's error ${errorCode}` } as const
}

/**
 * Sends batches that are made already, each with its own outcome. Connects at the first use; a connection that failed
 * is closed, with whatever may still come of its requests. Never retries and never waits: the caller does.
 */
export function openBatchProducer(options: KafkaOptions) {
  const builder: { build(of?: Address): Promise<Link> } = Reflect.get(createCluster(options), 'connectionPoolBuilder')
  const links = new Map<string, Promise<Link>>()
  let known: ClusterMetadata = { brokers: [], topics: [] }
  const seed = 'seed'

  const drop = (name: string) => {
    const link = links.get(name)
    links.delete(name)
    void link?.then((one) => one.destroy()).catch(() => undefined) // a broken connection ends by itself
  }
  const build = async (to: Address | undefined) => {
    const link = await builder.build(to)
    link.setVersions(loginVersions)
    link.setSupportAuthenticationProtocol(true)
    return link
  }
  const ask = async <Answer>(name: string, to: Address | undefined, what: RawRequest<Answer>) => {
    const link = links.get(name) ?? build(to)
    links.set(name, link)
    try {
      return await (await link).send(what)
    } catch (error) {
      if (links.get(name) === link) drop(name)
      throw error
    }
  }
  const topicOf = (name: string) => known.topics.find((topic) => topic.name === name && topic.errorCode === 0)
  const rightFor = (topic: string, code: number) => missingRight(options, 'Produce', code, topic)

  return {
    /** Asks any broker where the topics are. Rejects when none answers. */
    async learn(topics: readonly string[]): Promise<void> {
      const request = metadataRequest(topics)
      const connected = known.brokers.find((broker) => links.has(nameOf(broker)))
      const asked =
        connected === undefined ? undefined : await ask(nameOf(connected), connected, request).catch(() => undefined)
      known = asked ?? (await ask(seed, undefined, request)) // kafkajs takes the next address of the list each time
      if (known.brokers.some((broker) => links.has(nameOf(broker)))) drop(seed)
    },
    /** What was last learnt of each topic, of those too that Kafka says nothing about. */
    topics: () => known.topics,
    /** How many brokers there were then. */
    brokers: () => known.brokers.length,
    /** A topic as it was last learnt; undefined if Kafka does not know it. */
    topic: topicOf,
    /** The broker to send a partition's records to; undefined while there is none. */
    leaderOf(name: string, partition: number): number | undefined {
      const leader = topicOf(name)?.partitions.find((one) => one.partition === partition)?.leader ?? -1
      return leader >= 0 ? leader : undefined
    },
    /** Returns the reason why a partition of this topic has no leader. */
    whyNoLeader: (name: string): string =>
      rightFor(name, known.topics.find((topic) => topic.name === name)?.errorCode ?? 0) ??
      'it has no leader, or does not exist',
    /**
     * Sends at most one batch of each partition to a broker, with acks=all. A batch that `failed` may be stored or not.
     * Rejects when there is no answer: then all of the batches, some or none may be stored.
     */
    async send(nodeId: number, batches: readonly PartitionBatch[]) {
      const broker = known.brokers.find((one) => one.nodeId === nodeId)
      if (broker === undefined) throw new Error(`broker ${nodeId} is not among those that Kafka names`)
      const answers = await ask(nameOf(broker), broker, produceRequest(batches, replicasTimeoutMs))
      return answers.map((answer) => resultOf(answer, rightFor(answer.topic, answer.errorCode)))
    },
    close(): void {
      for (const name of [...links.keys()]) drop(name)
    },
  }
}
