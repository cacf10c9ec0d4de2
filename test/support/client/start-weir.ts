import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { kafkaOptions } from '../servers/kafka-topics.ts'
import { startServer } from '../servers/start-server.ts'
import { type RunningIngress, startIngress } from '../start-ingress.ts'

/** Of a key or token, as the policy stores it. */
export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

export interface RunningStack {
  readonly ingress: RunningIngress
  close(): Promise<void>
}

/** An ingress with a Redis and a Kafka of its own, under this policy. */
export async function startStack(policy: object): Promise<RunningStack> {
  const opened: { close(): Promise<void> }[] = []
  const close = async () => {
    for (const one of opened.toReversed()) await one.close()
  }
  try {
    const redis = await startServer(redisServer)
    opened.push(redis)
    const kafka = await startServer(kafkaServer)
    opened.push(kafka)
    await ensureTopics(kafkaOptions(kafka.address), await readTopics())
    const policyFile = `${redis.dir}/weir.yaml`
    await writeFile(policyFile, JSON.stringify(policy))
    const ingress = await startIngress({
      ...{ WEIR_POLICY_FILE: policyFile, WEIR_REDIS_URL: redis.address, WEIR_KAFKA_BROKERS: kafka.address },
    })
    opened.push(ingress)
    return { ingress, close }
  } catch (error) {
    await close()
    throw error
  }
}
