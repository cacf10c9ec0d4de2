import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { kafkaOptionsFrom, kafkaVariables } from '@weir/kafka/kafka-variables.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { type Environment, readConfig } from '@weir/runtime/read-config.ts'

/** Returns the variables for the Kafka of a `weir up`: those that a person set for another one do not apply. */
export function localKafka(login: { address: string; username: string; password: string }): Record<string, string> {
  const names = Object.values(kafkaVariables).flatMap(({ name }) => [name, `${name}_FILE`])
  return {
    ...Object.fromEntries(names.map((name) => [name, ''])),
    WEIR_KAFKA_BROKERS: login.address,
    WEIR_KAFKA_SASL_MECHANISM: 'SCRAM-SHA-256',
    WEIR_KAFKA_SASL_USERNAME: login.username,
    WEIR_KAFKA_SASL_PASSWORD: login.password,
  }
}

/** Reads how to reach Kafka from the `WEIR_KAFKA_…` variables, as services do. Throws `CONFIG_INVALID`. */
export const kafkaFrom = (environment: Environment, clientId: string): KafkaOptions =>
  kafkaOptionsFrom(readConfig(kafkaVariables, environment), clientId, createLogger(clientId, 'silent'))
