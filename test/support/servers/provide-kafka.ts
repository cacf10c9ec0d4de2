import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import type { TestProject } from 'vitest/node'
import { provideServer } from './provide-server.ts'

/** Global set-up: one Kafka for the whole tier. Tests use random topic and group names. */
export default (project: TestProject) => provideServer(project, kafkaServer, 'kafkaBrokers', 'WEIR_KAFKA_BROKERS')
