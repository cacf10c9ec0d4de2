import { clickhouseVariables } from '@weir/clickhouse/variables.ts'
import { kafkaVariables, sessionVariable } from '@weir/kafka/kafka-variables.ts'
import { serviceVariables } from '@weir/runtime/start-service.ts'
import { tracingVariables } from '@weir/runtime/tracing.ts'

/** Everything metering reads from its environment. */
export const meteringVariables = {
  ...serviceVariables(9102),
  sessionMs: sessionVariable,
  ...kafkaVariables,
  ...clickhouseVariables,
  ...tracingVariables,
} as const
