import { readFile, writeFile } from 'node:fs/promises'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { kafkaOptions } from '../servers/kafka-topics.ts'
import { startServer } from '../servers/start-server.ts'
import { type RunningIngress, startIngress } from '../start-ingress.ts'
import { guideFile } from './start-program.ts'

/** Redis and Kafka of a test's own: subjects of guides have fixed names, and other tests have policies of their own in Kafka. */
export interface GuideServers {
  readonly redisUrl: string
  readonly kafkaBrokers: string
  /** An ingress with a policy of docs/migrations; texts in it are replaced, and must be there. */
  startWeir(
    policy: string,
    options?: { readonly replace?: readonly [string, string]; readonly environment?: Readonly<Record<string, string>> },
  ): Promise<RunningIngress>
  close(): Promise<void>
}

export async function openGuideServers(): Promise<GuideServers> {
  const redis = await startServer(redisServer)
  const kafka = await startServer(kafkaServer)
  await ensureTopics(kafkaOptions(kafka.address), await readTopics())
  let started = 0
  return {
    redisUrl: redis.address,
    kafkaBrokers: kafka.address,
    async startWeir(policy, { replace, environment } = {}) {
      let text = await readFile(guideFile(policy), 'utf8')
      if (replace !== undefined) {
        if (!text.includes(replace[0])) throw new Error(`${policy} must have ${replace[0]}`)
        text = text.replace(replace[0], () => replace[1])
      }
      started += 1
      const policyFile = `${redis.dir}/weir-${started}.yaml`
      await writeFile(policyFile, text)
      return startIngress({
        WEIR_POLICY_FILE: policyFile,
        WEIR_REDIS_URL: redis.address,
        WEIR_KAFKA_BROKERS: kafka.address,
        ...environment,
      })
    },
    async close() {
      await redis.close()
      await kafka.close()
    },
  }
}

/** More than any traffic of a guide takes, on a busy machine too. */
const roomMs = 30_000

/** Waits until a window of the clock has still so much before it that the traffic of a guide falls into one. */
export async function untilWindowHasRoom(windowMs: number): Promise<void> {
  const hasRoom = () => windowMs - (Date.now() % windowMs) > roomMs
  if (!(await waitUntil(async () => hasRoom(), { deadlineMs: roomMs + 5_000 }))) throw new Error('no window has room')
}
