import { checkConfig } from '@weir/runtime/read-config.ts'
import { expect, test } from 'vitest'
import { redisVariables } from './redis-variables.ts'

const file = import.meta.filename

test.each([
  ['an address of another kind', { WEIR_REDIS_URL: 'redis+cluster://a' }, /^WEIR_REDIS_URL .*single or sentinel/],
  ['a certificate without its key', { WEIR_REDIS_TLS_CERT: file }, /^WEIR_REDIS_TLS_KEY is not set.*TLS_CERT needs it/],
  ['a key without its certificate', { WEIR_REDIS_TLS_KEY: file }, /^WEIR_REDIS_TLS_CERT is not set.*TLS_KEY needs it/],
  ['a file that is not there', { WEIR_REDIS_TLS_CA: '/nowhere.pem' }, /^WEIR_REDIS_TLS_CA must name a file.*ENOENT/],
])('%s is refused at the start', (_what, environment, message) => {
  const variables = redisVariables({ about: 'test', kinds: ['single', 'sentinel'] })
  const result = checkConfig(variables, { WEIR_REDIS_URL: 'redis://a', ...environment })
  expect(result).toEqual({ kind: 'problems', problems: [expect.stringMatching(message)] })
})
