import { X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { isLoopback } from '@weir/runtime/loopback.ts'
import { addresses, type Config, choice, filePath, secret, text, url, wholeNumber } from '@weir/runtime/read-config.ts'
import { readSmallFile } from '@weir/runtime/read-small-file.ts'
import type { KafkaLog, KafkaOptions } from './connect.ts'
import type { KafkaSecurity } from './security.ts'

const tlsServerName = 'WEIR_KAFKA_TLS_SERVER_NAME'

/** How Kafka is reached: the same for every connection of every service and of `./weir`. */
export const kafkaVariables = {
  kafkaBrokers: {
    ...addresses({ name: 'WEIR_KAFKA_BROKERS', about: 'addresses of Kafka brokers: host:port,…' }),
    check: (config: Readonly<Record<string, unknown>>) => problemsOf(config as KafkaConfig),
  },
  kafkaTls: choice({
    name: 'WEIR_KAFKA_TLS',
    about: "on: TLS with the system's authorities; WEIR_KAFKA_TLS_CA also enables TLS",
    fallback: 'off',
    of: ['on', 'off'],
  }),
  kafkaTlsCa: filePath({ name: 'WEIR_KAFKA_TLS_CA', about: "path of the certificates that signed the brokers'" }),
  kafkaTlsCert: filePath({
    name: 'WEIR_KAFKA_TLS_CERT',
    about: 'path of the client certificate',
    needs: 'WEIR_KAFKA_TLS_KEY',
  }),
  kafkaTlsKey: filePath({
    name: 'WEIR_KAFKA_TLS_KEY',
    about: 'path of the private key of that certificate',
    needs: 'WEIR_KAFKA_TLS_CERT',
  }),
  kafkaTlsServerName: text({ name: tlsServerName, about: "the name in the brokers' certificates", fallback: '' }),
  kafkaSaslMechanism: choice({
    name: 'WEIR_KAFKA_SASL_MECHANISM',
    about: 'SASL mechanism for Kafka; none: no login, or login by certificate',
    fallback: 'none',
    of: ['none', 'PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER'],
  }),
  kafkaSaslUsername: text({ name: 'WEIR_KAFKA_SASL_USERNAME', about: 'user for PLAIN and SCRAM', fallback: '' }),
  kafkaSaslPassword: secret(text({ name: 'WEIR_KAFKA_SASL_PASSWORD', about: 'its password', fallback: '' })),
  kafkaOauthTokenUrl: url({
    name: 'WEIR_KAFKA_OAUTH_TOKEN_URL',
    about: 'token endpoint for OAUTHBEARER',
    protocols: ['https:', 'http:'],
    emptyAllowed: true,
    fallback: '',
  }),
  kafkaOauthClientId: text({ name: 'WEIR_KAFKA_OAUTH_CLIENT_ID', about: 'OAuth client id', fallback: '' }),
  kafkaOauthClientSecret: secret(
    text({ name: 'WEIR_KAFKA_OAUTH_CLIENT_SECRET', about: 'OAuth client secret', fallback: '' }),
  ),
  kafkaOauthScope: text({ name: 'WEIR_KAFKA_OAUTH_SCOPE', about: 'OAuth scope', fallback: '' }),
} as const

/**
 * The group session of every consumer: how soon a partition passes on from a process that died, against how long one
 * may be stuck without losing it. The bounds are the broker's own defaults.
 */
export const sessionVariable = wholeNumber({
  name: 'WEIR_KAFKA_SESSION_MS',
  about: 'session timeout of consumers: a silent consumer then loses its partitions',
  fallback: '30000',
  min: 6_000,
  max: 1_800_000,
})

/** The values of `kafkaVariables`. */
export type KafkaConfig = Config<typeof kafkaVariables>

const usesTls = (config: KafkaConfig) => config.kafkaTls === 'on' || config.kafkaTlsCa !== ''

/** What no variable by itself shows. */
function problemsOf(config: KafkaConfig): string[] {
  const { kafkaTlsCa: ca, kafkaTlsCert: cert, kafkaTlsKey: key, kafkaSaslMechanism: mechanism } = config
  const given = new Map(
    Object.entries(kafkaVariables).map(([field, { name }]) => {
      const value = config[field as keyof KafkaConfig]
      return [name as string, typeof value === 'string' ? value : 'text' in value ? value.text : '']
    }),
  )
  const lacking = (names: readonly string[], why: string) =>
    names.filter((name) => !given.get(name)).map((name) => `${name} is not set: ${why}`)
  const idle = (names: readonly string[], why: string) =>
    names.filter((name) => given.get(name)).map((name) => `${name} is of no use: ${why}`)
  const tls = ['WEIR_KAFKA_TLS_CERT', 'WEIR_KAFKA_TLS_KEY', tlsServerName]
  const password = ['WEIR_KAFKA_SASL_USERNAME', 'WEIR_KAFKA_SASL_PASSWORD']
  const oauth = ['WEIR_KAFKA_OAUTH_TOKEN_URL', 'WEIR_KAFKA_OAUTH_CLIENT_ID', 'WEIR_KAFKA_OAUTH_CLIENT_SECRET']
  const isOauth = mechanism === 'OAUTHBEARER'
  const mechanismIs = `WEIR_KAFKA_SASL_MECHANISM is ${mechanism}`
  const problems = [
    ...(usesTls(config) ? [] : idle(tls, 'set WEIR_KAFKA_TLS=on or WEIR_KAFKA_TLS_CA too')),
    ...(mechanism === 'none' || isOauth ? idle(password, mechanismIs) : lacking(password, mechanismIs)),
    ...(isOauth ? lacking(oauth, mechanismIs) : idle([...oauth, 'WEIR_KAFKA_OAUTH_SCOPE'], mechanismIs)),
    ...problemOf('WEIR_KAFKA_TLS_CA', () => ca && new X509Certificate(readSmallFile(ca))),
    ...problemOf('WEIR_KAFKA_TLS_CERT and WEIR_KAFKA_TLS_KEY', () => {
      if (cert !== '') createSecureContext({ cert: readSmallFile(cert), key: readSmallFile(key) })
    }),
  ]
  const tokenUrl = URL.parse(config.kafkaOauthTokenUrl)
  if (tokenUrl?.protocol === 'http:' && !isLoopback(tokenUrl.hostname))
    problems.push('WEIR_KAFKA_OAUTH_TOKEN_URL must begin with https://, unless it is a loopback address')
  return problems
}

function problemOf(names: string, use: () => unknown): string[] {
  try {
    use()
    return []
  } catch (error) {
    return [`${names} cannot be used for TLS: ${(error as Error).message}`]
  }
}

function saslOf(config: KafkaConfig): KafkaSecurity['sasl'] {
  const { kafkaSaslMechanism: mechanism, kafkaSaslUsername: username, kafkaSaslPassword: password } = config
  if (mechanism === 'none') return undefined
  if (mechanism !== 'OAUTHBEARER') return { mechanism, username, password }
  const { kafkaOauthTokenUrl: tokenUrl, kafkaOauthClientId: clientId, kafkaOauthClientSecret: clientSecret } = config
  return { mechanism, tokenUrl, clientId, clientSecret, scope: config.kafkaOauthScope }
}

/**
 * How a process reaches Kafka, made once at its start. Warns where the network could read what proves its identity.
 */
export function kafkaOptionsFrom(config: KafkaConfig, clientId: string, log: KafkaLog): KafkaOptions {
  const { kafkaBrokers: brokers, kafkaTlsCa: ca, kafkaTlsCert: cert, kafkaTlsKey: key } = config
  const sasl = saslOf(config)
  const tls = usesTls(config) ? { ca, cert, key, serverName: config.kafkaTlsServerName } : undefined
  const isReadable = sasl !== undefined && !sasl.mechanism.startsWith('SCRAM') && tls === undefined
  if (isReadable && !brokers.every((one) => isLoopback(one.replace(/:\d+$/, ''))))
    log.warn({ brokers }, `${sasl.mechanism} without TLS: the password can be read on the way; set WEIR_KAFKA_TLS`)
  return { brokers, clientId, log, security: { tls, sasl } }
}
