import { clickhouseVariables } from '@weir/clickhouse/variables.ts'
import { portalKeyProblem } from '@weir/identity/portal-key.ts'
import { kafkaVariables } from '@weir/kafka/kafka-variables.ts'
import { redisVariables } from '@weir/redis/redis-url.ts'
import { adminTokenVariable } from '@weir/runtime/admin-token.ts'
import { isLoopback } from '@weir/runtime/loopback.ts'
import { port, secret, text, type Variable } from '@weir/runtime/read-config.ts'
import { serviceVariables } from '@weir/runtime/start-service.ts'
import { tlsVariables } from '@weir/runtime/tls-listener.ts'
import type { StatusAddress } from './status/ask-processes.ts'

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
    return { problem: `must be at most ${statusUrlsMax} such as metering=http://127.0.0.1:9102, separated by commas` }
  },
}

/** Where browsers and links in mail find the console; a cookie is Secure there, so that it must be https. */
const publicUrl: Variable<URL | undefined> = {
  name: 'WEIR_CONSOLE_PUBLIC_URL',
  about:
    'address of the console for browsers and links: https://weir.example.com; empty: this machine’s browsers alone',
  fallback: '',
  parse: (value) => {
    if (value === '') return { value: undefined }
    const url = URL.parse(value)
    const isBare = url !== null && url.href === `${url.origin}/` && url.origin !== 'null'
    if (isBare && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))))
      return { value: url }
    return { problem: 'must be https://HOST without a path; http only on loopback' }
  },
}

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
  publicUrl,
  statusUrls,
} as const
