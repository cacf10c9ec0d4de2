import { clickhouseVariables } from '@weir/clickhouse/variables.ts'
import { kafkaVariables } from '@weir/kafka/kafka-variables.ts'
import { redisVariables } from '@weir/redis/redis-url.ts'
import { adminTokenVariable } from '@weir/runtime/admin-token.ts'
import { idleTimeoutVariable } from '@weir/runtime/bound-connections.ts'
import { consoleUrlVariable } from '@weir/runtime/console-url.ts'
import { port, text, url, type Variable } from '@weir/runtime/read-config.ts'
import { signingKey, unsubscribeKeyVariable } from '@weir/runtime/signing-keys.ts'
import { serviceVariables } from '@weir/runtime/start-service.ts'
import { tlsVariables } from '@weir/runtime/tls-listener.ts'
import { portalOrigins } from './http/portal-pages.ts'
import type { StatusAddress } from './status/ask-processes.ts'

/** Processes of a large installation; each is asked at the same time. */
const statusUrlsMax = 64

/** Where the processes have their ops ports. */
const statusUrls: Variable<readonly StatusAddress[]> = {
  name: 'WEIR_STATUS_URLS',
  about: 'ops addresses of all processes, separated by commas, for `weir status`: metering=http://127.0.0.1:9102',
  fallback: '',
  parse: (value) => {
    const found = value.split(',').flatMap((one) => one.trim() || [])
    const addresses = found.flatMap((one) => {
      const [, name, url = ''] = /^(?:([\w.-]{1,64})=)?(https?:\/\/[^/@?#]+\/?)$/.exec(one) ?? []
      return URL.canParse(url) ? { name: name ?? new URL(url).host, url } : []
    })
    if (addresses.length === found.length && found.length <= statusUrlsMax) return { value: addresses }
    return { problem: `must be up to ${statusUrlsMax} URLs like metering=http://127.0.0.1:9102, separated by commas` }
  },
}

/** Everything the console reads from its environment. */
export const consoleVariables = {
  ...serviceVariables(9104),
  ...clickhouseVariables,
  ...kafkaVariables,
  ...redisVariables({ about: 'Redis for limits; empty: limits cannot be reset here', fallback: '' }),
  consoleHost: text({ name: 'WEIR_CONSOLE_HOST', about: 'address of the usage and admin API', fallback: '127.0.0.1' }),
  consolePort: port({ name: 'WEIR_CONSOLE_PORT', about: 'port of the usage and admin API', fallback: '8090' }),
  idleTimeoutMs: idleTimeoutVariable,
  ...tlsVariables('tls'),
  adminTokenSha256: adminTokenVariable,
  portalKey: signingKey({ name: 'WEIR_PORTAL_KEY', about: 'key that signs portal tokens: at least 32 characters' }),
  unsubscribeKey: unsubscribeKeyVariable,
  portalOrigins,
  portalName: text({
    name: 'WEIR_PORTAL_NAME',
    about: "your company's name on customers' pages; empty: Weir",
    fallback: '',
  }),
  portalColor: {
    name: 'WEIR_PORTAL_COLOR',
    about: "your brand colour on customers' pages, such as #0b5cad; empty: Weir's colour",
    fallback: '',
    parse: (value: string) =>
      /^(?:#[0-9a-fA-F]{6})?$/.test(value) ? { value } : { problem: 'must be a colour such as #0b5cad' },
  } satisfies Variable<string>,
  publicUrl: consoleUrlVariable,
  ingressUrl: url({
    name: 'WEIR_INGRESS_PUBLIC_URL',
    about: 'public address of the ingress, for commands on the page; empty: unknown',
    protocols: ['http:', 'https:'],
    emptyAllowed: true,
    fallback: '',
  }),
  statusUrls,
} as const
