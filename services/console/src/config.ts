import { clickhouseVariables } from '@weir/clickhouse/variables.ts'
import { portalKeyProblem } from '@weir/identity/portal-key.ts'
import { kafkaVariables } from '@weir/kafka/kafka-variables.ts'
import { redisVariables } from '@weir/redis/redis-url.ts'
import { adminTokenVariable } from '@weir/runtime/admin-token.ts'
import { port, secret, text } from '@weir/runtime/read-config.ts'
import { serviceVariables } from '@weir/runtime/start-service.ts'
import { tlsVariables } from '@weir/runtime/tls-listener.ts'

/** The keys of portal tokens; two while one replaces the other. */
const portalKey = secret({
  ...text({
    name: 'WEIR_PORTAL_KEY',
    about: 'signs the tokens of customers’ portals: at least 32 characters',
    fallback: '',
  }),
  parse: (value) => {
    const problem = portalKeyProblem(value)
    return problem === undefined ? { value } : { problem }
  },
})

/** Everything the console reads from its environment. */
export const consoleVariables = {
  ...serviceVariables(9104),
  ...clickhouseVariables,
  ...kafkaVariables,
  ...redisVariables({
    about: 'the Redis that decides; empty: limits cannot be reset here',
    fallback: '',
    kinds: ['single', 'sentinel', 'cluster'],
  }),
  consoleHost: text({ name: 'WEIR_CONSOLE_HOST', about: 'address of the usage and admin API', fallback: '127.0.0.1' }),
  consolePort: port({ name: 'WEIR_CONSOLE_PORT', about: 'port of the usage and admin API', fallback: '8090' }),
  ...tlsVariables('tls'),
  adminTokenSha256: adminTokenVariable,
  portalKey,
} as const
