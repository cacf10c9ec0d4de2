import { decodeEscapes } from '@weir/core/http/decode-escapes.ts'
import { filePath, secret, type Variable } from '@weir/runtime/read-config.ts'
import type { Secret } from '@weir/runtime/secret.ts'

/** A server's host and port. */
export interface ServerAddress {
  readonly host: string
  readonly port: number
}

/** Where Redis is, by the ways in which it can be run. */
export interface RedisAddress {
  /** `single`: one server. `sentinel`: the master that Sentinels name. `cluster`: some nodes, which name the others. */
  readonly kind: 'single' | 'sentinel' | 'cluster'
  /** Never empty; of kind `single` exactly one. For `sentinel` they are the Sentinels. */
  readonly servers: readonly ServerAddress[]
  /** Sentinel's name of the master; else empty. */
  readonly masterName: string
  readonly isTls: boolean
  /** Empty for the `default` user. */
  readonly username: string
  /** Empty for none. */
  readonly password: string
  readonly db: number
}

type Parsed = { readonly address: RedisAddress } | { readonly problem: string }

const forms =
  'must be redis://[user:password@]host[:port][/db], redis+sentinel://[user:password@]host:port,…/master-name[/db] or ' +
  'redis+cluster://[user:password@]host:port,…, with rediss in place of redis for TLS'

const shape = /^redis(s?)(?:\+(sentinel|cluster))?:\/\/(?:([^@/]*)@)?([^@/?#]+)(?:\/([^?#]*))?$/
const hostAndPort = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]+))(?::(\d{1,5}))?$/

function parseServer(text: string, portDefault: number): ServerAddress | undefined {
  const match = hostAndPort.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3] ?? portDefault)
  return host === undefined || port < 1 || port > 65_535 ? undefined : { host, port }
}

/** A database's number; 0 when it is not named. Servers come with 16 and may be given more. */
const parseDb = (text = '') => (/^\d{0,4}$/.test(text) ? Number(text) : undefined)

/** Reads an address; a problem is a sentence that goes on from the variable's name, and never repeats the password. */
export function parseRedisUrl(url: string): Parsed {
  const [, tls, given, userinfo = '', list = '', path = ''] = shape.exec(url) ?? []
  const kind = given === 'sentinel' || given === 'cluster' ? given : 'single'
  const servers = list.split(',').map((one) => parseServer(one, kind === 'sentinel' ? 26_379 : 6_379))
  const known = servers.filter((server) => server !== undefined)
  if (tls === undefined || known.length < servers.length || (kind === 'single' && known.length > 1)) {
    return { problem: forms }
  }

  const colon = userinfo.indexOf(':')
  const username = decodeEscapes(colon < 0 ? userinfo : userinfo.slice(0, colon))
  const password = decodeEscapes(colon < 0 ? '' : userinfo.slice(colon + 1))
  const [first = '', ...rest] = path.split('/')
  const masterName = kind === 'sentinel' ? decodeEscapes(first) : ''
  const db = parseDb(kind === 'sentinel' ? rest[0] : first)
  const isWhole = rest.length <= (kind === 'sentinel' ? 1 : 0)
  if (username === undefined || password === undefined || masterName === undefined || db === undefined || !isWhole) {
    return { problem: forms }
  }
  if (kind === 'sentinel' && masterName === '') return { problem: `${forms}; the master's name is missing` }
  if (kind === 'cluster' && path !== '') return { problem: `${forms}; a Cluster has no databases` }
  return { address: { kind, servers: known, masterName, isTls: tls === 's', username, password, db } }
}

type UrlVariable = Pick<Variable<string>, 'name' | 'about' | 'fallback'>

/** The address of a Redis with its user and password, in a form of docs/configuration.md. */
export const redisUrlVariable = (named: UrlVariable): Variable<Secret> =>
  secret({
    ...named,
    parse: (url) => {
      if (url === '' && named.fallback === '') return { value: url }
      const parsed = parseRedisUrl(url)
      return 'problem' in parsed ? parsed : { value: url }
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
