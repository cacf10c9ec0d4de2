import { kafkaVariables } from '@weir/kafka/kafka-variables.ts'
import { sessionVariable } from '@weir/kafka/session-variable.ts'
import { url } from '@weir/runtime/read-config.ts'
import { serviceVariables } from '@weir/runtime/start-service.ts'

/** Everything metering reads from its environment. */
export const meteringVariables = {
  ...serviceVariables(9102),
  sessionMs: sessionVariable,
  ...kafkaVariables,
  clickhouseUrl: url({ name: 'WEIR_CLICKHOUSE_URL', about: 'where usage is kept', protocols: ['http:', 'https:'] }),
} as const
