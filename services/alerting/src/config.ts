import { clickhouseVariables } from '@weir/clickhouse/variables.ts'
import { kafkaVariables, sessionVariable } from '@weir/kafka/kafka-variables.ts'
import { policySourceVariables } from '@weir/policy-feed/service-policy.ts'
import { redisUrlVariable, redisVariables } from '@weir/redis/redis-url.ts'
import { consoleUrlVariable } from '@weir/runtime/console-url.ts'
import { secret, text, url } from '@weir/runtime/read-config.ts'
import { unsubscribeKeyVariable } from '@weir/runtime/signing-keys.ts'
import { serviceVariables } from '@weir/runtime/start-service.ts'
import { tracingVariables } from '@weir/runtime/tracing.ts'

/** All variables of alerting except the endpoints' secrets, whose variables the policy names. */
export const alertingVariables = {
  ...serviceVariables(9103),
  ...policySourceVariables,
  sessionMs: sessionVariable,
  ...kafkaVariables,
  ...clickhouseVariables,
  ...tracingVariables,
  ...redisVariables({ about: 'the Redis that holds the claims' }),
  smtpUrl: secret(
    url({
      name: 'WEIR_SMTP_URL',
      about: 'the server that sends mail, smtp://user:password@host:port or smtps://; empty for none',
      protocols: ['smtp:', 'smtps:'],
      emptyAllowed: true,
      fallback: '',
    }),
  ),
  smtpFrom: text({ name: 'WEIR_SMTP_FROM', about: 'who mail is from', fallback: 'weir@localhost' }),
  unsubscribeKey: unsubscribeKeyVariable,
  consoleUrl: consoleUrlVariable,
  templatesDir: text({
    name: 'WEIR_TEMPLATES_DIR',
    about: 'the directory with a folder for each name in `templates` of an endpoint; empty for none',
    fallback: '',
  }),
  outgoingProxy: secret(
    url({
      name: 'WEIR_OUTGOING_PROXY',
      about: 'the proxy through which endpoints are reached, but mail; empty for none',
      protocols: ['http:', 'https:'],
      emptyAllowed: true,
      fallback: '',
    }),
  ),
  queueRedisUrl: redisUrlVariable({
    name: 'WEIR_QUEUE_REDIS_URL',
    about: 'the Redis that holds the queue of deliveries; empty for the same as WEIR_REDIS_URL',
    fallback: '',
  }),
} as const
