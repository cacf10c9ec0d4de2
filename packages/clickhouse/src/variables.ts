import { X509Certificate } from 'node:crypto'
import { type Config, secret, text, url, type Variable } from '@weir/runtime/read-config.ts'
import { readSmallFile } from '@weir/runtime/read-small-file.ts'
import type { Secret } from '@weir/runtime/secret.ts'
import { addressesOf } from './addresses.ts'

/** Goes into statements as it is: without quotes it needs to be a plain name. */
const database: Variable<string> = {
  name: 'WEIR_CLICKHOUSE_DATABASE',
  about: "the database that holds Weir's tables",
  fallback: 'weir',
  parse: (value) =>
    /^[A-Za-z_]\w{0,63}$/.test(value)
      ? { value }
      : { problem: 'must be a name of at most 64 letters, digits and underscores, and begin with no digit' },
}

/** Goes into statements between quotes. */
const cluster: Variable<string> = {
  name: 'WEIR_CLICKHOUSE_CLUSTER',
  about: "name of the ClickHouse cluster with Weir's tables; empty: a single server",
  fallback: '',
  parse: (value) =>
    /^[\w.-]{0,64}$/.test(value)
      ? { value }
      : { problem: 'must be a name of at most 64 letters, digits, dots, hyphens and underscores' },
}

/** Servers that are no cluster have each its own rows. */
const requireCluster = ({ clickhouseCluster, clickhouseUrl }: Readonly<Record<string, unknown>>) => {
  const several = addressesOf((clickhouseUrl as Secret).text).flat().length > 1
  return clickhouseCluster === '' && several
    ? [`${address.name} names several servers: ${cluster.name} must name their cluster`]
    : []
}

const tlsCa: Variable<string> = {
  ...text({ name: 'WEIR_CLICKHOUSE_TLS_CA', about: "path of the certificates that signed ClickHouse's", fallback: '' }),
  parse: (value) => {
    try {
      if (value !== '') new X509Certificate(readSmallFile(value))
      return { value }
    } catch (error) {
      return { problem: `must name a PEM file of certificates (${(error as Error).message})` }
    }
  },
}

const address = url({ name: 'WEIR_CLICKHOUSE_URL', about: "ClickHouse's HTTP address", protocols: ['http:', 'https:'] })

/** How every process reaches ClickHouse. */
export const clickhouseVariables = {
  clickhouseUrl: secret({
    ...address,
    parse: (value) => {
      if (/%(?![0-9a-f]{2})/i.test(value)) return { problem: 'must have each % encoded as %25' }
      // The client takes these for settings of each request, and throws for others.
      if (/^[^?#]*(?:[?&]clickhouse_setting_\w+=[^&#]*)*$/.test(value)) {
        const read = addressesOf(value).flat().map(address.parse)
        return read.find((one) => 'problem' in one) ?? { value }
      }
      return { problem: 'must be without #, and without ? but for clickhouse_setting_NAME=VALUE' }
    },
  }),
  clickhouseUser: text({ name: 'WEIR_CLICKHOUSE_USER', about: "ClickHouse's user; overrides the URL's", fallback: '' }),
  clickhousePassword: secret(
    text({ name: 'WEIR_CLICKHOUSE_PASSWORD', about: "that user's password; overrides the URL's", fallback: '' }),
  ),
  clickhouseDatabase: database,
  clickhouseTlsCa: tlsCa,
  clickhouseCluster: { ...cluster, check: requireCluster },
} as const

/** A server by the values of these variables. */
export type ClickhouseServer = Config<typeof clickhouseVariables>

/** The server of an address, with every other variable at its default. */
export const clickhouseAt = (address: string): ClickhouseServer => ({
  clickhouseUrl: { variable: 'WEIR_CLICKHOUSE_URL', file: undefined, text: address },
  clickhouseUser: '',
  clickhousePassword: { variable: 'WEIR_CLICKHOUSE_PASSWORD', file: undefined, text: '' },
  clickhouseDatabase: 'weir',
  clickhouseTlsCa: '',
  clickhouseCluster: '',
})
