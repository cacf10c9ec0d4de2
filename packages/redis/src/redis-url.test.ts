import { checkConfig } from '@weir/runtime/read-config.ts'
import { expect, test } from 'vitest'
import { parseRedisUrl, redisVariables } from './redis-url.ts'

const plain = { kind: 'single', masterName: '', isTls: false, username: '', password: '', db: 0 }

test.each([
  ['redis://cache', { servers: [{ host: 'cache', port: 6_379 }] }],
  ['rediss://10.0.0.1:7000/3', { isTls: true, servers: [{ host: '10.0.0.1', port: 7_000 }], db: 3 }],
  ['redis://:p%40ss@[::1]:7000', { password: 'p@ss', servers: [{ host: '::1', port: 7_000 }] }],
  ['redis://weir:a:b@cache', { username: 'weir', password: 'a:b', servers: [{ host: 'cache', port: 6_379 }] }],
  [
    'redis+sentinel://weir:x@a:1,b,c:3/main/2',
    {
      kind: 'sentinel',
      username: 'weir',
      password: 'x',
      masterName: 'main',
      db: 2,
      servers: [
        { host: 'a', port: 1 },
        { host: 'b', port: 26_379 },
        { host: 'c', port: 3 },
      ],
    },
  ],
  [
    'rediss+cluster://a:1,b:2/',
    {
      kind: 'cluster',
      isTls: true,
      servers: [
        { host: 'a', port: 1 },
        { host: 'b', port: 2 },
      ],
    },
  ],
])('%s is read', (url, expected) => {
  expect(parseRedisUrl(url)).toEqual({ address: { ...plain, ...expected } })
})

test.each([
  'http://cache',
  'redis://',
  'redis://a,b',
  'redis://a:0',
  'redis://a:65536',
  'redis://a/x',
  'redis://a/1/2',
  'redis://a:%/',
  'redis://%zz@a',
  'redis+sentinel://a:1',
  'redis+cluster://a:1/2',
  'redis+other://a',
])('%s is refused, with the forms that there are', (url) => {
  expect(parseRedisUrl(url)).toEqual({ problem: expect.stringContaining('redis+sentinel://') })
})

test('a problem never repeats the password', () => {
  expect(JSON.stringify(parseRedisUrl('redis://user:hush@a:0'))).not.toContain('hush')
})

const file = import.meta.filename

test.each([
  ['an address of no known form', { WEIR_REDIS_URL: 'http://a' }, /^WEIR_REDIS_URL .*redis\+cluster:/],
  ['a certificate without its key', { WEIR_REDIS_TLS_CERT: file }, /^WEIR_REDIS_TLS_KEY is not set.*TLS_CERT needs it/],
  ['a key without its certificate', { WEIR_REDIS_TLS_KEY: file }, /^WEIR_REDIS_TLS_CERT is not set.*TLS_KEY needs it/],
  [
    'a file that is not there',
    { WEIR_REDIS_TLS_CA: '/nowhere.pem' },
    /^WEIR_REDIS_TLS_CA must be the path of a readable file.*ENOENT/,
  ],
])('%s is refused at the start', (_what, environment, message) => {
  const variables = redisVariables({ about: 'test' })
  const result = checkConfig(variables, { WEIR_REDIS_URL: 'redis://a', ...environment })
  expect(result).toEqual({ kind: 'problems', problems: [expect.stringMatching(message)] })
})
