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
  ...redisVariables({ about: "Redis for alerting's claims" }),
  smtpUrl: secret(
    url({
      name: 'WEIR_SMTP_URL',
      about: 'mail server, smtp://user:password@host:port or smtps://; empty: no mail',
      protocols: ['smtp:', 'smtps:'],
      emptyAllowed: true,
      fallback: '',
    }),
  ),
  smtpFrom: text({ name: 'WEIR_SMTP_FROM', about: 'sender address of mail', fallback: 'weir@localhost' }),
  unsubscribeKey: unsubscribeKeyVariable,
  consoleUrl: consoleUrlVariable,
  templatesDir: text({
    name: 'WEIR_TEMPLATES_DIR',
    about: 'directory with one folder per name in `templates` of endpoints; empty: no templates',
    fallback: '',
  }),
  outgoingProxy: secret(
    url({
      name: 'WEIR_OUTGOING_PROXY',
      about: 'HTTP proxy for calls to endpoints, except mail; empty: no proxy',
      protocols: ['http:', 'https:'],
      emptyAllowed: true,
      fallback: '',
    }),
  ),
  queueRedisUrl: redisUrlVariable({
    name: 'WEIR_QUEUE_REDIS_URL',
    about: 'Redis for the delivery queue; empty: the same as WEIR_REDIS_URL',
    fallback: '',
  }),
} as const
