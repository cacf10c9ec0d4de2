import { sessionVariable } from '@weir/kafka/session-variable.ts'
import { addresses, url } from '@weir/runtime/read-config.ts'
import { serviceVariables } from '@weir/runtime/start-service.ts'

/** Everything metering reads from its environment. */
export const meteringVariables = {
  ...serviceVariables(9102),
  sessionMs: sessionVariable,
  kafkaBrokers: addresses({ name: 'WEIR_KAFKA_BROKERS', about: 'where decisions are read, host:port,…' }),
  clickhouseUrl: url({ name: 'WEIR_CLICKHOUSE_URL', about: 'where usage is kept', protocols: ['http:', 'https:'] }),
} as const
