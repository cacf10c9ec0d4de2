import { describe, expect, it } from 'vitest'
import { addresses, checkConfig, choice, port, readConfig, sha256, text, url, wholeNumber } from './read-config.ts'

const variables = {
  redis: url({ name: 'WEIR_REDIS_URL', about: 'redis', protocols: ['redis:'] }),
  brokers: addresses({ name: 'WEIR_KAFKA_BROKERS', about: 'kafka' }),
  port: port({ name: 'WEIR_PORT', about: 'port', fallback: '8080' }),
  level: choice({ name: 'WEIR_LEVEL', about: 'level', fallback: 'info', of: ['info', 'warn'] }),
  ms: wholeNumber({ name: 'WEIR_MS', about: 'ms', fallback: '25', min: 1, max: 100 }),
  token: sha256({ name: 'WEIR_TOKEN_SHA256', about: 'token', fallback: '' }),
  file: text({ name: 'WEIR_FILE', about: 'file', fallback: 'weir.yaml' }),
}
const right = { WEIR_REDIS_URL: 'redis://h:1', WEIR_KAFKA_BROKERS: 'a:1, [::1]:2' }

describe('reading the configuration', () => {
  it('fills in what is unset, and an empty variable is unset', () => {
    expect(readConfig(variables, { ...right, WEIR_PORT: '' })).toEqual({
      redis: 'redis://h:1',
      brokers: ['a:1', '[::1]:2'],
      port: 8080,
      level: 'info',
      ms: 25,
      token: '',
      file: 'weir.yaml',
    })
  })

  it('names all problems together, with the form that each value should have, and no secret', () => {
    const environment = {
      WEIR_REDIS_URL: 'http://h',
      WEIR_PORT: '70000',
      WEIR_LEVEL: 'loud',
      WEIR_MS: '2.5',
      WEIR_TOKEN_SHA256: 'the token itself',
    }
    const result = checkConfig(variables, environment)
    expect(result).toEqual({
      kind: 'problems',
      problems: [
        'WEIR_REDIS_URL must be a URL that begins with redis://, but is "http://h"',
        'WEIR_KAFKA_BROKERS is not set: kafka',
        'WEIR_PORT must be a whole number from 1 to 65535, but is "70000"',
        'WEIR_LEVEL must be one of info, warn, but is "loud"',
        'WEIR_MS must be a whole number from 1 to 100, but is "2.5"',
        'WEIR_TOKEN_SHA256 must be a SHA-256 as 64 lower-case hex digits, but is something else',
      ],
    })
    expect(() => readConfig(variables, environment)).toThrow('WEIR_LEVEL')
  })
})
