import { writeFile } from 'node:fs/promises'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { kafkaOptions } from '../servers/kafka-topics.ts'
import { startServer } from '../servers/start-server.ts'
import { startIngress } from '../start-ingress.ts'

/** Starts a Kafka that holds no policy: one in Kafka comes before any file. */
export async function openPolicyServers() {
  const opened: { close(): Promise<void> }[] = []
  const kafka = await startServer(kafkaServer)
  opened.push(kafka)
  await ensureTopics(kafkaOptions(kafka.address), await readTopics())
  return {
    /** An ingress with the text of a policy, and a Redis in which nothing is counted yet. */
    async startWeir(policy: string, environment?: Readonly<Record<string, string>>) {
      const redis = await startServer(redisServer)
      opened.push(redis)
      const policyFile = `${redis.dir}/weir.yaml`
      await writeFile(policyFile, policy)
      const weir = await startIngress({
        WEIR_POLICY_FILE: policyFile,
        WEIR_REDIS_URL: redis.address,
        WEIR_KAFKA_BROKERS: kafka.address,
        ...environment,
      })
      opened.push(weir)
      return weir
    },
    async close() {
      for (const one of opened.toReversed()) await one.close()
    },
  }
}

/** More than any traffic of a guide takes, on a busy machine too. */
const roomMs = 30_000

/** Waits until so much of a window of the clock is left that the traffic of a guide falls into one. */
export async function untilWindowHasRoom(windowMs: number): Promise<void> {
  const hasRoom = () => windowMs - (Date.now() % windowMs) > roomMs
  if (!(await waitUntil(hasRoom, { deadlineMs: roomMs + 5_000 }))) throw new Error('no window has room')
}
