import type { NativeServer } from '@weir/local-programs/native-server.ts'
import { GenericContainer, getContainerRuntimeClient, type StartedTestContainer, Wait } from 'testcontainers'

/** Images with the same versions as docker-compose.yml; test/repo holds the two together. */
export const images = {
  redis: 'redis:8.8.3-alpine',
  kafka: 'apache/kafka:4.1.1',
  clickhouse: 'clickhouse/clickhouse-server:26.3',
} as const

/** A fixed port, because Kafka must advertise to its clients the address that they reach it by. */
const kafkaPort = 29_092

async function startRedis() {
  const container = await new GenericContainer(images.redis)
    .withExposedPorts(6379)
    .withWaitStrategy(Wait.forLogMessage('Ready to accept connections'))
    .start()
  return { container, address: `redis://${container.getHost()}:${container.getMappedPort(6379)}` }
}

async function startKafka() {
  const container = await new GenericContainer(images.kafka)
    .withExposedPorts({ container: kafkaPort, host: kafkaPort })
    .withEnvironment({
      KAFKA_NODE_ID: '1',
      KAFKA_PROCESS_ROLES: 'broker,controller',
      KAFKA_LISTENERS: `PLAINTEXT://:${kafkaPort},CONTROLLER://:9093`,
      KAFKA_ADVERTISED_LISTENERS: `PLAINTEXT://127.0.0.1:${kafkaPort}`,
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT',
      KAFKA_CONTROLLER_LISTENER_NAMES: 'CONTROLLER',
      KAFKA_CONTROLLER_QUORUM_VOTERS: '1@localhost:9093',
      KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: '1',
      KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS: '0',
      KAFKA_AUTO_CREATE_TOPICS_ENABLE: 'false',
    })
    .withWaitStrategy(Wait.forLogMessage('Kafka Server started'))
    .start()
  return { container, address: `127.0.0.1:${kafkaPort}` }
}

async function startClickhouse() {
  const container = await new GenericContainer(images.clickhouse)
    .withExposedPorts(8123)
    .withEnvironment({ CLICKHOUSE_SKIP_USER_SETUP: '1' })
    .withWaitStrategy(Wait.forHttp('/ping', 8123))
    .start()
  return { container, address: `http://${container.getHost()}:${container.getMappedPort(8123)}` }
}

const starters: Record<NativeServer['name'], () => Promise<{ container: StartedTestContainer; address: string }>> = {
  redis: startRedis,
  kafka: startKafka,
  clickhouse: startClickhouse,
}

/** The third choice: the server in a container. Undefined where no Docker engine runs. */
export async function startContainer(name: NativeServer['name']) {
  const engine = await getContainerRuntimeClient().catch(() => undefined)
  if (engine === undefined) return undefined
  const { container, address } = await starters[name]()
  return {
    address,
    async close() {
      await container.stop()
    },
  }
}
