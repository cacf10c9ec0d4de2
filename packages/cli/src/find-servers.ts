import { type ClickhouseServer, clickhouseVariables } from '@weir/clickhouse/variables.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { kafkaOptionsFrom, kafkaVariables } from '@weir/kafka/kafka-variables.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { type Environment, readConfig, type Variables } from '@weir/runtime/read-config.ts'

/** Returns whether the environment sets a variable, directly or by a file. */
export const isGiven = (environment: Environment, variable: string): boolean =>
  Boolean(environment[variable] || environment[`${variable}_FILE`])

/** Variables, and the files that stand for them, as if nobody had set them. */
const unset = (variables: Variables): Record<string, string> =>
  Object.fromEntries(Object.values(variables).flatMap(({ name }) => [name, `${name}_FILE`].map((one) => [one, ''])))

/** Returns the variables for the Kafka of a `weir up`: those that a person set for another one do not apply. */
export function localKafka(login: { address: string; username: string; password: string }): Record<string, string> {
  return {
    ...unset(kafkaVariables),
    WEIR_KAFKA_BROKERS: login.address,
    WEIR_KAFKA_SASL_MECHANISM: 'SCRAM-SHA-256',
    WEIR_KAFKA_SASL_USERNAME: login.username,
    WEIR_KAFKA_SASL_PASSWORD: login.password,
  }
}

/** Reads how to reach Kafka from the `WEIR_KAFKA_…` variables, as services do. Throws `CONFIG_INVALID`. */
export const kafkaFrom = (environment: Environment, clientId: string): KafkaOptions =>
  kafkaOptionsFrom(readConfig(kafkaVariables, environment), clientId, createLogger(clientId, 'silent'))

/** Returns the variables for the ClickHouse of a `weir up`: those that a person set for another one do not apply. */
export function clickhouseVariablesFor(
  environment: Environment,
  ownAddress: string | undefined,
): Record<string, string> {
  if (ownAddress === undefined || isGiven(environment, clickhouseVariables.clickhouseUrl.name)) return {}
  const { clickhouseUrl, clickhouseDatabase: _, ...others } = clickhouseVariables
  return { ...unset(others), [clickhouseUrl.name]: ownAddress }
}

/** Finds the ClickHouse of the environment, else that of a `weir up`. Throws CONFIG_INVALID where there is neither. */
export const findClickhouse = (environment: Environment, ownAddress?: string): ClickhouseServer =>
  readConfig(clickhouseVariables, { ...environment, ...clickhouseVariablesFor(environment, ownAddress) })
