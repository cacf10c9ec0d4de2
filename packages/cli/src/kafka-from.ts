import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { kafkaOptionsFrom, kafkaVariables } from '@weir/kafka/kafka-variables.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { type Environment, readConfig } from '@weir/runtime/read-config.ts'

/** How a command reaches the Kafka of the same `WEIR_KAFKA_…` variables that services read. Throws `CONFIG_INVALID`. */
export const kafkaFrom = (environment: Environment, clientId: string): KafkaOptions =>
  kafkaOptionsFrom(readConfig(kafkaVariables, environment), clientId, createLogger(clientId, 'silent'))
