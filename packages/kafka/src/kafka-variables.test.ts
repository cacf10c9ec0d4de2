import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkConfig, readConfig } from '@weir/runtime/read-config.ts'
import { expect, it } from 'vitest'
import { kafkaOptionsFrom, kafkaVariables } from './kafka-variables.ts'

const noPem = join(tmpdir(), `weir-no-pem-${process.pid}`)
writeFileSync(noPem, 'no certificate')
const password = { WEIR_KAFKA_SASL_USERNAME: 'u', WEIR_KAFKA_SASL_PASSWORD: 'hidden' }
const oauth = {
  WEIR_KAFKA_SASL_MECHANISM: 'OAUTHBEARER',
  WEIR_KAFKA_OAUTH_CLIENT_ID: 'c',
  WEIR_KAFKA_OAUTH_CLIENT_SECRET: 'hidden',
}
const problemsOf = (more: Record<string, string>) => {
  const checked = checkConfig(kafkaVariables, { WEIR_KAFKA_BROKERS: 'kafka.example:9092', ...more })
  return checked.kind === 'problems' ? checked.problems.join('\n') : ''
}

it.for<[string, Record<string, string>, RegExp]>([
  ['a user without mechanism', password, /^WEIR_KAFKA_SASL_USERNAME is of no use: WEIR_KAFKA_SASL_MECHANISM is none\n/],
  [
    'a password without user',
    { WEIR_KAFKA_SASL_MECHANISM: 'PLAIN', WEIR_KAFKA_SASL_PASSWORD: 'hidden' },
    /^WEIR_KAFKA_SASL_USERNAME is not set/,
  ],
  [
    'tokens without address',
    oauth,
    /^WEIR_KAFKA_OAUTH_TOKEN_URL is not set: WEIR_KAFKA_SASL_MECHANISM is OAUTHBEARER$/,
  ],
  [
    'tokens without encryption',
    { ...oauth, WEIR_KAFKA_OAUTH_TOKEN_URL: 'http://10.0.0.1/' },
    /^WEIR_KAFKA_OAUTH_TOKEN_URL must begin with https/,
  ],
  ['a scope without tokens', { WEIR_KAFKA_OAUTH_SCOPE: 's' }, /^WEIR_KAFKA_OAUTH_SCOPE is of no use/],
  ['a certificate without key', { WEIR_KAFKA_TLS: 'on', WEIR_KAFKA_TLS_CERT: noPem }, /^WEIR_KAFKA_TLS_KEY is not set/],
  [
    'a certificate without TLS',
    { WEIR_KAFKA_TLS_CERT: noPem, WEIR_KAFKA_TLS_KEY: noPem },
    /^WEIR_KAFKA_TLS_CERT is of no use/,
  ],
  [
    'a certificate that is none',
    { WEIR_KAFKA_TLS: 'on', WEIR_KAFKA_TLS_CERT: noPem, WEIR_KAFKA_TLS_KEY: noPem },
    /^WEIR_KAFKA_TLS_CERT and WEIR_KAFKA_TLS_KEY cannot be used for TLS: /,
  ],
  ['an authority that is none', { WEIR_KAFKA_TLS_CA: noPem }, /^WEIR_KAFKA_TLS_CA cannot be used for TLS: /],
  ['tokens from loopback', { ...oauth, WEIR_KAFKA_OAUTH_TOKEN_URL: 'http://127.0.0.1:1/' }, /^$/],
])('%s', ([, environment, problems]) => {
  expect(problemsOf(environment)).toMatch(problems)
  expect(problemsOf(environment)).not.toContain('hidden')
})

it.for<[string, Record<string, string>, number]>([
  ['kafka.example:9092', { WEIR_KAFKA_SASL_MECHANISM: 'PLAIN' }, 1],
  ['kafka.example:9092', { WEIR_KAFKA_SASL_MECHANISM: 'PLAIN', WEIR_KAFKA_TLS: 'on' }, 0],
  ['kafka.example:9092', { WEIR_KAFKA_SASL_MECHANISM: 'SCRAM-SHA-512' }, 0],
  ['127.0.0.1:9092', { WEIR_KAFKA_SASL_MECHANISM: 'PLAIN' }, 0],
])(
  'a password that can be read on the way to %s is a warning, and nothing of it is shown: %j',
  ([brokers, more, wanted]) => {
    const said: unknown[] = []
    const note = (...line: unknown[]) => void said.push(line)
    const log = { debug: note, info: note, warn: note, error: note }
    const environment = { WEIR_KAFKA_BROKERS: brokers, ...password, ...more }
    expect(structuredClone(kafkaOptionsFrom(readConfig(kafkaVariables, environment), 'c', log).security)).toMatchObject(
      { sasl: { mechanism: more.WEIR_KAFKA_SASL_MECHANISM, username: 'u' } },
    )
    expect(said).toHaveLength(wanted)
    expect(JSON.stringify(said)).not.toContain('hidden')
  },
)
