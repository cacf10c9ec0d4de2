import { readFile, writeFile } from 'node:fs/promises'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { onTestFinished } from 'vitest'
import { kafkaOptions } from '../servers/kafka-topics.ts'
import { startServer } from '../servers/start-server.ts'
import { type RunningIngress, startIngress } from '../start-ingress.ts'
import { guideFile } from './start-program.ts'

/** How an ingress of a guide differs from its policy's text. */
interface WeirOptions {
  readonly policy: string
  /** A text of the policy, which must be there, and what it becomes. */
  readonly replace?: readonly [string, string]
  readonly environment?: Readonly<Record<string, string>>
}

/** A Kafka of a test file's own, because other tests have policies of their own in theirs. */
export interface GuideServers {
  /** Brokers of the Kafka, in which nothing but what the guides did is recorded. */
  readonly kafka: string
  /** A Redis that nobody has counted in, until the test ends. */
  startRedis(): Promise<string>
  /** An ingress with a policy of docs/migrations and such a Redis, until the test ends. */
  startWeir(options: WeirOptions): Promise<RunningIngress>
  close(): Promise<void>
}

/** Starts what the guides' programs need beside themselves. */
export async function openGuideServers(): Promise<GuideServers> {
  const kafka = await startServer(kafkaServer)
  await ensureTopics(kafkaOptions(kafka.address), await readTopics())
  const openRedis = async () => {
    const redis = await startServer(redisServer)
    onTestFinished(() => redis.close())
    return redis
  }
  return {
    kafka: kafka.address,
    startRedis: async () => (await openRedis()).address,
    async startWeir({ policy, replace: [old, next] = ['version: 1', 'version: 1'], environment }) {
      const text = await readFile(guideFile(policy), 'utf8')
      if (!text.includes(old)) throw new Error(`${policy} must have ${old}`)
      const redis = await openRedis()
      const policyFile = `${redis.dir}/weir.yaml`
      await writeFile(
        policyFile,
        text.replace(old, () => next),
      )
      const weir = await startIngress({
        WEIR_POLICY_FILE: policyFile,
        WEIR_REDIS_URL: redis.address,
        WEIR_KAFKA_BROKERS: kafka.address,
        ...environment,
      })
      onTestFinished(() => weir.close())
      return weir
    },
    close: () => kafka.close(),
  }
}

/** More than any traffic of a guide takes, on a busy machine too. */
const roomMs = 30_000

/** Waits until so much of a window of the clock is left that the traffic of a guide falls into one. */
export async function untilWindowHasRoom(windowMs: number): Promise<void> {
  const hasRoom = () => windowMs - (Date.now() % windowMs) > roomMs
  if (!(await waitUntil(hasRoom, { deadlineMs: roomMs + 5_000 }))) throw new Error('no window has room')
}
