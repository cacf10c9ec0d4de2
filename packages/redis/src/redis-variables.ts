import { filePath, secret, type Variable } from '@weir/runtime/read-config.ts'
import type { Secret } from '@weir/runtime/secret.ts'
import { parseRedisUrl, type RedisAddress } from './redis-url.ts'

type UrlVariable = Pick<Variable<string>, 'name' | 'about' | 'fallback'> & {
  readonly kinds: readonly RedisAddress['kind'][]
}

/** The address of a Redis with its user and password, in a form of docs/configuration.md. */
export const redisUrlVariable = ({ kinds, ...named }: UrlVariable): Variable<Secret> =>
  secret({
    ...named,
    parse: (url) => {
      if (url === '' && named.fallback === '') return { value: url }
      const parsed = parseRedisUrl(url)
      if ('problem' in parsed) return parsed
      if (kinds.includes(parsed.address.kind)) return { value: url }
      return { problem: `names a ${parsed.address.kind}, and only ${kinds.join(' or ')} will do here` }
    },
  })

/** What every process that uses Redis reads for it. */
export const redisVariables = (named: Omit<UrlVariable, 'name'>) => ({
  redisUrl: redisUrlVariable({ name: 'WEIR_REDIS_URL', ...named }),
  redisTlsCa: filePath({ name: 'WEIR_REDIS_TLS_CA', about: "path of the certificates that signed Redis's" }),
  redisTlsCert: filePath({
    name: 'WEIR_REDIS_TLS_CERT',
    about: 'path of the certificate with which Weir identifies itself to Redis',
    needs: 'WEIR_REDIS_TLS_KEY',
  }),
  redisTlsKey: filePath({
    name: 'WEIR_REDIS_TLS_KEY',
    about: "path of that certificate's key",
    needs: 'WEIR_REDIS_TLS_CERT',
  }),
})

/** Paths of PEM files, empty for none: the part of a configuration that a connection reads again. */
export type RedisTlsFiles = Readonly<Record<'redisTlsCa' | 'redisTlsCert' | 'redisTlsKey', string>>
