import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { kafkaOptions } from '../servers/kafka-topics.ts'
import { startServer } from '../servers/start-server.ts'
import { type RunningIngress, startIngress } from '../start-ingress.ts'

/** An ingress with the Kafka that has its records. */
export interface WeirWithPolicy extends RunningIngress {
  readonly brokers: string
}

/** An ingress under a policy of a test's own, with a Kafka of its own: a policy in Kafka comes before any file. */
export async function startWeirWithPolicy(policy: string, redisUrl: string): Promise<WeirWithPolicy> {
  const dir = await mkdtemp(join(tmpdir(), 'weir-test-imported-'))
  await writeFile(join(dir, 'weir.yaml'), policy)
  const kafka = await startServer(kafkaServer)
  const end = async () => {
    await kafka.close()
    await rm(dir, { recursive: true, force: true })
  }
  try {
    await ensureTopics(kafkaOptions(kafka.address), await readTopics())
    const servers = { WEIR_REDIS_URL: redisUrl, WEIR_KAFKA_BROKERS: kafka.address }
    const ingress = await startIngress({ ...servers, WEIR_POLICY_FILE: join(dir, 'weir.yaml') })
    const close = async () => {
      await ingress.close()
      await end()
    }
    return { ...ingress, brokers: kafka.address, close }
  } catch (error) {
    await end()
    throw error
  }
}
