import { writeFile } from 'node:fs/promises'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { kafkaOptions } from './servers/kafka-topics.ts'
import { type RunningServer, startServer } from './servers/start-server.ts'
import { type RunningIngress, startIngress } from './start-ingress.ts'

type Environment = Readonly<Record<string, string>>

/** A Redis, a Kafka and a file with a policy: what ingress processes of one test file share, and no other file has. */
export interface IngressStack {
  readonly kafka: RunningServer
  readonly redis: RunningServer
  /** Starts a process, which ends with the stack at the latest. */
  start(environment?: Environment): Promise<RunningIngress>
  close(): Promise<void>
}

/** Its own Kafka, because a policy in Kafka comes before the file. */
export async function openIngressStack(policy: object): Promise<IngressStack> {
  const opened: { close(): Promise<void> }[] = []
  const keep = <T extends { close(): Promise<void> }>(one: T): T => {
    opened.push(one)
    return one
  }
  const close = async () => {
    for (const one of opened.splice(0).toReversed()) await one.close()
  }
  try {
    const redis = keep(await startServer(redisServer))
    const kafka = keep(await startServer(kafkaServer))
    await ensureTopics(kafkaOptions(kafka.address), await readTopics())
    const policyFile = `${redis.dir}/weir.yaml`
    await writeFile(policyFile, JSON.stringify(policy))
    const servers = { WEIR_POLICY_FILE: policyFile, WEIR_REDIS_URL: redis.address, WEIR_KAFKA_BROKERS: kafka.address }
    const start = async (environment: Environment = {}) => keep(await startIngress({ ...servers, ...environment }))
    return { kafka, redis, start, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** The same with one process. */
export async function startIngressStack(policy: object, environment: Environment = {}) {
  const stack = await openIngressStack(policy)
  const ingress = await stack.start(environment).catch(async (error: unknown) => {
    await stack.close()
    throw error
  })
  return { ...stack, ingress }
}
