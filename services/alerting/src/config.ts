import { sessionVariable } from '@weir/kafka/session-variable.ts'
import { addresses, text, url } from '@weir/runtime/read-config.ts'
import { serviceVariables } from '@weir/runtime/start-service.ts'

/** Everything alerting reads from its environment, the endpoints' secrets apart: the policy names those variables. */
export const alertingVariables = {
  ...serviceVariables(9103),
  policyFile: text({ name: 'WEIR_POLICY_FILE', about: 'path of the policy', fallback: 'weir.yaml' }),
  sessionMs: sessionVariable,
  kafkaBrokers: addresses({ name: 'WEIR_KAFKA_BROKERS', about: 'where decisions are read and alerts published' }),
  redisUrl: url({ name: 'WEIR_REDIS_URL', about: 'the Redis that holds the claims', protocols: ['redis:', 'rediss:'] }),
  queueRedisUrl: url({
    name: 'WEIR_QUEUE_REDIS_URL',
    about: 'the Redis that holds the queue of deliveries; empty for the same as WEIR_REDIS_URL',
    fallback: '',
    protocols: ['redis:', 'rediss:'],
    emptyAllowed: true,
  }),
} as const
